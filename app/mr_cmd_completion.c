/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_cmd.h"
#include "mr_cmd_manual.h"

#include <string.h>

/* The script is the same for every table; what it asks is answered by the rows below it. */
static const char head[] =
	"# bash completion for millrace, made from the tables of its options\n"
	"_millrace()\n"
	"{\n"
	"\tlocal word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} kind\n"
	"\tlocal commands='' options='' files='' values='' operands=''\n"
	"\tCOMPREPLY=()\n";

static const char tail[] = "\tif [ -n \"$commands\" ]; then\n"
			   "\t\tkind=words options=$commands\n"
			   "\telif [[ \" $files \" == *\" $before \"* ]]; then\n"
			   "\t\tkind=files\n"
			   "\telif [[ \" $values \" == *\" $before \"* ]]; then\n"
			   "\t\treturn\n"
			   "\telif [[ $word == -* ]]; then\n"
			   "\t\tkind=words\n"
			   "\telif [ \"$operands\" = FILES ]; then\n"
			   "\t\tkind=files\n"
			   "\telse\n"
			   "\t\tkind=words options=\"$options $operands\"\n"
			   "\tfi\n"
			   "\tif [ $kind = files ]; then\n"
			   "\t\tcompopt -o filenames 2>/dev/null\n"
			   "\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
			   "\telse\n"
			   "\t\tmapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")\n"
			   "\tfi\n"
			   "}\n"
			   "complete -F _millrace millrace\n";

static bool is_first(uint32_t i)
{
	return i == 0 || strcmp(mr_cmds[i].name, mr_cmds[i - 1].name) != 0;
}

/* Options of one kind: those that take a file, those that take something else, or all. */
enum kind {
	FILES,
	VALUES,
	ALL
};

static void print_options(const struct mr_cmd *c, const char *name, enum kind kind)
{
	const char *gap = "";

	printf(" %s='", name);
	for (const struct mr_cmd_option *o = c->options; o->name != NULL; o++) {
		bool file = o->value != NULL &&
			(strstr(o->value, "FILE") != NULL || strstr(o->value, "DIR") != NULL);

		if (kind != ALL && (o->value == NULL || file != (kind == FILES)))
			continue;
		printf("%s%s%s", gap, mr_cmd_dashes(o), o->name);
		gap = " ";
	}
	printf("%s'", kind == ALL ? " --help" : "");
}

static void print_row(const struct mr_cmd *c, const char *const *pages, uint32_t count)
{
	printf("\t%s%s%s)", c->name, c->sub != NULL ? "\\ " : "", c->sub != NULL ? c->sub : "\\ *");
	print_options(c, "options", ALL);
	print_options(c, "files", FILES);
	print_options(c, "values", VALUES);
	if (c->run == mr_cmd_manual) {
		printf(" operands='");
		for (uint32_t i = 0; i < count; i++)
			printf("%s%s", i > 0 ? " " : "", pages[i]);
		printf("'");
	} else if (c->operands[0] != '\0') {
		printf(" operands=FILES");
	}
	printf(" ;;\n");
}

void mr_manual_completion(const char *const *pages, uint32_t count)
{
	printf("%s\tif ((COMP_CWORD == 1)); then\n\t\tcommands='", head);
	for (uint32_t i = 0; i < mr_cmds_count; i++)
		if (is_first(i))
			printf("%s ", mr_cmds[i].name);
	printf("--help --version'\n\tfi\n\tcase \"${COMP_WORDS[1]-} ${COMP_WORDS[2]-}\" in\n");
	for (uint32_t i = 0; i < mr_cmds_count; i++)
		print_row(&mr_cmds[i], pages, count);
	for (uint32_t i = 0; i < mr_cmds_count; i++) {
		if (mr_cmds[i].sub == NULL)
			continue;
		if (is_first(i))
			printf("\t%s\\ *) options='--help' operands='", mr_cmds[i].name);
		printf("%s ", mr_cmds[i].sub);
		if (i + 1 == mr_cmds_count || is_first(i + 1))
			printf("' ;;\n");
	}
	printf("\tesac\n%s", tail);
}
