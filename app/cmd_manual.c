/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_cmd_manual.h"

#include "mr_base.h"
#include "mr_cmd.h"
#include "mr_config_keys.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

/*
 * Text on lines of its own, each at most 78 characters and none with the end of a sentence in
 * it, as mdoc wants. A backslash, and a point or quote at the start of a line, mean something.
 */
static void text(const char *s, const char *end)
{
	size_t used = 0;

	while (*s != '\0') {
		size_t n = strcspn(s, " ");

		if (used > 0 && (used + n > 76 || s[-2] == '.')) {
			putchar('\n');
			used = 0;
		}
		if (used == 0 && (*s == '.' || *s == '\''))
			printf("\\&");
		if (used > 0)
			putchar(' ');
		used += n + 1;
		for (; n > 0; n--, s++)
			printf(*s == '\\' ? "\\e" : "%c", *s);
		s += *s == ' ';
	}
	printf("%s\n", end);
}

/* A part of a sentence as a sentence of its own. */
static void sentence(const char *s)
{
	if (*s >= 'a' && *s <= 'z')
		printf("%c", *s - 'a' + 'A');
	else
		printf("%c", *s);
	text(s + 1, ".");
}

static void head(const char *title, int section, const char *name, const char *what)
{
	printf(".\\\" Made by `millrace manual %s.%d` from the program's own tables.\n"
	       ".Dd %s\n.Dt %s %d\n.Os\n.Sh NAME\n.Nm %s\n.Nd %s\n",
		name, section, MR_RELEASE_DAY, title, section, name, what);
}

static void synopsis(const struct mr_cmd *c)
{
	bool optional = c->operands[0] == '[';

	printf(".Nm\n.Cm %s%s%s\n", c->name, c->sub != NULL ? " " : "",
		c->sub != NULL ? c->sub : "");
	if (c->operands[0] != '\0')
		printf("%s%.*s\n", optional ? ".Op Ar " : ".Ar ",
			(int)strlen(c->operands) - 2 * optional, c->operands + optional);
	for (const struct mr_cmd_option *o = c->options; o->name != NULL; o++)
		printf("%s%s%s%s%s\n", o->use == MR_CMD_MUST ? ".Fl " : ".Op Fl ",
			mr_cmd_dashes(o) + 1, o->name, o->value != NULL ? " Ar " : "",
			o->value != NULL ? o->value : "");
}

static void options(const struct mr_cmd *c)
{
	if (c->options[0].name == NULL)
		return;
	printf(".Bl -tag -width Ds\n");
	for (const struct mr_cmd_option *o = c->options; o->name != NULL; o++) {
		printf(".It Fl %s%s%s%s\n", mr_cmd_dashes(o) + 1, o->name,
			o->value != NULL ? " Ar " : "", o->value != NULL ? o->value : "");
		sentence(o->help);
		if (o->use == MR_CMD_INSTEAD)
			printf("Not together with\n.Fl -%s .\n", o[-1].name);
	}
	printf(".El\n");
}

static void see_also(const char *const *pages)
{
	printf(".Sh SEE ALSO\n");
	for (; *pages != NULL; pages++)
		printf(".Xr %s%s\n", *pages, pages[1] != NULL ? " ," : "");
}

static void page_millrace(void)
{
	static const char *const others[] = {"millrace.yaml 5", "millrace-stages 7", NULL};

	head("MILLRACE", 1, "millrace", "packet appliance whose packets stay in GPU memory");
	printf(".Sh SYNOPSIS\n");
	for (uint32_t i = 0; i < mr_cmds_count; i++)
		synopsis(&mr_cmds[i]);
	printf(".Nm\n.Fl -help | -version\n"
	       ".Sh DESCRIPTION\n"
	       "The NIC writes frames into GPU memory, a persistent kernel works on them\n"
	       "there, and the NIC reads them from there.\n"
	       "The CPU cores only move queue entries.\n"
	       "What is built is told by a configuration, see\n.Xr millrace.yaml 5 .\n"
	       "With\n.Fl -json ,\nstandard output is one line that holds one JSON object\n"
	       "(of\n.Cm stats Fl -watch ,\none each second).\n");
	for (uint32_t i = 0; i < mr_cmds_count; i++) {
		const struct mr_cmd *c = &mr_cmds[i];

		printf(".Ss millrace %s%s%s\n", c->name, c->sub != NULL ? " " : "",
			c->sub != NULL ? c->sub : "");
		sentence(c->help);
		options(c);
	}
	printf(".Sh FILES\n.Bl -tag -width Ds\n.It Pa /etc/millrace/millrace.yaml\n"
	       "What the service runs.\n"
	       ".It Pa /usr/share/doc/millrace\nExamples, and the runbook.\n.El\n"
	       ".Sh EXIT STATUS\n.Bl -tag -width Ds\n");
	for (uint32_t i = 0; i < mr_cmd_statuses_count; i++) {
		printf(".It %d\n", mr_cmd_statuses[i].status);
		sentence(mr_cmd_statuses[i].meaning);
	}
	printf(".El\n");
	see_also(others);
}

static void keys(bool gen)
{
	struct mr_config_key k;

	printf(".Bl -tag -width Ds\n");
	for (uint32_t i = 0; mr_config_key_at(gen, i, &k); i++) {
		printf(".It Ic %s\n", k.path);
		text(k.help, ".");
		printf(".br\n(");
		text(k.kind, ")");
	}
	printf(".El\n");
}

static void page_yaml(void)
{
	static const char *const others[] = {"millrace 1", "millrace-stages 7", NULL};

	head("MILLRACE.YAML", 5, "millrace.yaml", "configuration of millrace");
	printf(".Sh DESCRIPTION\n"
	       "One YAML file says what is built.\n"
	       "All mistakes in it are reported at once, each with its line.\n"
	       "Sizes are written with KiB, MiB or GiB.\n"
	       "Names of files begin in the folder in which the command was started.\n"
	       "In a path of keys,\n.Sq []\nstands behind a list.\n"
	       ".Sh KEYS OF RUN\n"
	       "Those of\n.Cm run ,\n.Cm check\nand\n.Cm doctor .\n");
	keys(false);
	printf(".Sh KEYS OF GEN\nThose of\n.Cm gen .\n");
	keys(true);
	printf(".Sh FILES\n.Bl -tag -width Ds\n"
	       ".It Pa /usr/share/doc/millrace/examples/millrace.yaml\n"
	       "Every key with its reason; itself a configuration that runs.\n.El\n");
	see_also(others);
}

static void kind(const struct mr_param_desc *p)
{
	char *words = NULL;
	size_t bytes;
	FILE *f = open_memstream(&words, &bytes);

	if (f != NULL) {
		mr_cmd_print_param_kind(f, p);
		fclose(f);
		printf(".br\n(");
		text(words, ")");
	}
	free(words);
}

static void stage(const struct mr_stage_desc *s)
{
	printf(".Ss %s\n", s->name);
	sentence(s->help);
	printf("A packet per %s%s.\n", s->work == MR_WORK_WARP ? "warp" : "thread",
		mr_stage_in_order(s) ? ", in order: one worker" : "");
	if (s->params_count + s->counters_count == 0)
		return;
	printf(".Bl -tag -width Ds\n");
	for (uint32_t i = 0; i < s->params_count; i++) {
		printf(".It Ic %s\n", s->params[i].name);
		text(s->params[i].help, ".");
		kind(&s->params[i]);
	}
	for (uint32_t i = 0; i < s->counters_count; i++) {
		printf(".It Va %s\n", s->counters[i].name);
		printf("Counter: ");
		text(s->counters[i].help, ".");
	}
	printf(".El\n");
}

static void page_stages(void)
{
	static const char *const others[] = {"millrace 1", "millrace.yaml 5", NULL};

	head("MILLRACE-STAGES", 7, "millrace-stages", "what millrace can do with packets");
	printf(".Sh DESCRIPTION\n"
	       "A lane's chain of stages decides what becomes of a frame.\n"
	       "Each entry of the key\n.Ic lanes[].stages\n"
	       "names one by\n.Ic use\nand sets its parameters by\n.Ic params .\n"
	       ".Sh STAGES\n");
	for (uint32_t i = 0; mr_stage_at(i) != NULL; i++)
		stage(mr_stage_at(i));
	see_also(others);
}

static void page_completion(void);

static const struct {
	const char *name;
	void (*print)(void);
} pages[] = {
	{"millrace.1", page_millrace},
	{"millrace.yaml.5", page_yaml},
	{"millrace-stages.7", page_stages},
	{"completion.bash", page_completion},
};

static void page_completion(void)
{
	const char *names[MR_ARRAY_LEN(pages)];

	for (uint32_t i = 0; i < MR_ARRAY_LEN(pages); i++)
		names[i] = pages[i].name;
	mr_manual_completion(names, MR_ARRAY_LEN(pages));
}

int mr_cmd_manual(const struct mr_cmd *self, int argc, char **argv)
{
	if (mr_cmd_next(self, argc, argv) != -1 || optind + 1 != argc)
		return mr_cmd_usage(self);
	for (uint32_t i = 0; i < MR_ARRAY_LEN(pages); i++) {
		if (strcmp(argv[optind], pages[i].name) != 0)
			continue;
		pages[i].print();
		return MR_EXIT_CLEAN;
	}
	fprintf(stderr, "millrace: there is no page '%s'; there are", argv[optind]);
	for (uint32_t i = 0; i < MR_ARRAY_LEN(pages); i++)
		fprintf(stderr, "%s %s", i > 0 ? "," : "", pages[i].name);
	fputc('\n', stderr);
	return MR_EXIT_USAGE;
}
