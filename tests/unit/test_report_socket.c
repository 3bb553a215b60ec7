/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Serving and fetching over a real telemetry socket of this process, and
 * fetching from servers that are dead, silent, slow or hostile.
 */
#include "mr_report.h"
#include "report_fixture.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>
#include <rte_eal.h>

static char runtime_dir[] = "/tmp/mr-report-XXXXXX";

static struct fixture big = {.stages = MR_CHAIN_MAX, .evidence = MR_REPORT_EVIDENCE_MAX};

static int start_dpdk(void **state)
{
	char *argv[] = {"test", "--no-huge", "--no-pci", "-m", "16", "-l", "0", "--file-prefix",
		"millrace-big", "--log-level", "error", NULL};

	(void)state;
	if (mkdtemp(runtime_dir) == NULL || setenv("RUNTIME_DIRECTORY", runtime_dir, 1) != 0)
		return -1;
	return rte_eal_init(MR_ARRAY_LEN(argv) - 1, argv) < 0 ? -1 : 0;
}

static int stop_dpdk(void **state)
{
	char command[128];

	(void)state;
	mr_report_unserve();
	rte_eal_cleanup();
	snprintf(command, sizeof(command), "rm -rf %s", runtime_dir);
	return system(command);
}

/* On a machine without time an answer takes longer than the two seconds that it may. */
static int fetch_big(json_t **ret_report, struct mr_err *err)
{
	int rc = -ETIMEDOUT;

	for (int i = 0; i < 10 && rc == -ETIMEDOUT; i++)
		rc = mr_report_fetch("big", ret_report, err);
	return rc;
}

static void fetched_report_equals_the_local_one_for_16_lanes_of_8_stages(void **state)
{
	struct mr_report_source src = fixture_source(&big, "big", 16);
	json_t *local, *fetched;
	struct mr_err err = {0};
	char name[MR_NAME_MAX];
	char *a, *b;

	(void)state;
	assert_int_equal(mr_report_serve(&src, &err), 0);
	assert_int_equal(fetch_big(&fetched, &err), 0);
	local = mr_report_json(&src);
	assert_non_null(local);
	/* As text, so that the order of keys counts too. */
	a = json_dumps(local, JSON_INDENT(1));
	b = json_dumps(fetched, JSON_INDENT(1));
	assert_string_equal(a, b);
	assert_int_equal(json_array_size(json_object_get(fetched, "lanes")), 16);
	assert_true(json_is_true(json_object_get(fetched, "balanced")));
	free(a);
	free(b);
	json_decref(local);
	json_decref(fetched);
	assert_int_equal(mr_report_find(name, &err), 0);
	assert_string_equal(name, "big");
	mr_report_unserve();
}

/* What of a reload is asked of the source, and what it says. */
struct reload_fixture {
	struct fixture fx;
	struct mr_report_reload answer;
	uint32_t looks; /* before it is no more pending */
	uint64_t heard; /* ticket */
	bool busy;
};

static struct reload_fixture reloads;
static pthread_mutex_t reloads_lock = PTHREAD_MUTEX_INITIALIZER; /* served by another thread */

static bool reload_ask(void *ctx, uint64_t *ret_ticket)
{
	bool accepted;

	(void)ctx;
	pthread_mutex_lock(&reloads_lock);
	*ret_ticket = ++reloads.answer.ticket;
	accepted = !reloads.busy;
	pthread_mutex_unlock(&reloads_lock);
	return accepted;
}

static void reload_look(void *ctx, struct mr_report_reload *ret)
{
	(void)ctx;
	pthread_mutex_lock(&reloads_lock);
	reloads.answer.pending = reloads.looks > 0;
	reloads.looks -= reloads.looks > 0;
	*ret = reloads.answer;
	pthread_mutex_unlock(&reloads_lock);
}

static void reload_heard(void *ctx, uint64_t ticket)
{
	(void)ctx;
	pthread_mutex_lock(&reloads_lock);
	reloads.heard = ticket;
	pthread_mutex_unlock(&reloads_lock);
}

static void keep_sentence(void *ctx, const char *sentence)
{
	uint32_t *count = ctx;

	assert_string_equal(sentence, reloads.answer.sentences[(*count)++]);
}

static void a_reload_is_waited_for_and_says_all_that_refused_it(void **state)
{
	struct mr_report_source src = fixture_source(&reloads.fx, "big", 1);
	struct mr_err err = {0};
	uint32_t told = 0;

	(void)state;
	assert_int_equal(mr_report_serve(&src, &err), 0);
	assert_int_equal(mr_report_reload("big", keep_sentence, &told, &err), -EBUSY);
	mr_report_unserve();
	src.reload = reload_ask;
	src.reloaded = reload_look;
	src.heard = reload_heard;
	reloads.looks = 2;
	assert_int_equal(mr_report_serve(&src, &err), 0);
	assert_int_equal(mr_report_reload("big", keep_sentence, &told, &err), 0);
	pthread_mutex_lock(&reloads_lock);
	assert_int_equal(reloads.looks, 0);
	assert_int_equal(reloads.heard, reloads.answer.ticket);
	reloads.answer.refused = true;
	reloads.answer.sentences_count = MR_REPORT_SENTENCES_MAX;
	for (uint32_t i = 0; i < MR_REPORT_SENTENCES_MAX; i++)
		memset(reloads.answer.sentences[i], 'a' + (int)i, MR_REPORT_SENTENCE_MAX - 1);
	pthread_mutex_unlock(&reloads_lock);
	assert_int_equal(mr_report_reload("big", keep_sentence, &told, &err), -EINVAL);
	assert_int_equal(told, MR_REPORT_SENTENCES_MAX);
	assert_non_null(strstr(err.msg, "'big' refused"));
	pthread_mutex_lock(&reloads_lock);
	reloads.busy = true;
	pthread_mutex_unlock(&reloads_lock);
	assert_int_equal(mr_report_reload("big", keep_sentence, &told, &err), -EBUSY);
	mr_report_unserve();
	assert_int_equal(mr_report_reload("none", keep_sentence, &told, &err), -ENOENT);
}

static void a_second_source_is_refused_until_the_first_has_gone(void **state)
{
	struct mr_report_source src = fixture_source(&big, "big", 1);
	struct mr_err err = {0};
	json_t *report = NULL;

	(void)state;
	assert_int_equal(mr_report_serve(&src, &err), 0);
	assert_int_equal(mr_report_serve(&src, &err), -EBUSY);
	assert_non_null(strstr(err.msg, "'big'"));
	mr_report_unserve();
	mr_report_unserve();
	assert_int_equal(mr_report_serve(&src, &err), 0);
	assert_int_equal(fetch_big(&report, &err), 0);
	json_decref(report);
	mr_report_unserve();
}

static void an_unserved_instance_answers_with_a_sentence(void **state)
{
	struct mr_err err = {0};
	json_t *report;

	(void)state;
	mr_report_unserve();
	assert_int_equal(mr_report_fetch("big", &report, &err), -ECONNRESET);
	assert_null(report);
	assert_non_null(strstr(err.msg, "starting or stopping"));
}

struct fetching {
	uint32_t stop, good;
};

static void *fetch_until_told(void *arg)
{
	struct fetching *f = arg;
	json_t *report;

	while (__atomic_load_n(&f->stop, __ATOMIC_RELAXED) == 0)
		if (mr_report_fetch("big", &report, NULL) == 0) {
			__atomic_add_fetch(&f->good, 1, __ATOMIC_RELAXED);
			json_decref(report);
		}
	return NULL;
}

static void the_source_is_never_asked_after_unserve(void **state)
{
	enum {
		CLIENTS = 3
	};
	static struct fixture fx = {.stages = 2, .evidence = 2};
	struct mr_report_source src = fixture_source(&fx, "big", 4);
	pthread_t client[CLIENTS];
	struct fetching f = {0};
	bool got = false;

	(void)state;
	for (size_t i = 0; i < CLIENTS; i++)
		assert_int_equal(pthread_create(&client[i], NULL, fetch_until_told, &f), 0);
	/* A machine without time gets longer rounds, until one report was whole. */
	for (uint32_t round = 0; round < 20 || (!got && round < 40); round++) {
		__atomic_store_n(&fx.gone, false, __ATOMIC_RELAXED);
		assert_int_equal(mr_report_serve(&src, NULL), 0);
		usleep(round < 20 ? 20000 : 500000);
		got = __atomic_load_n(&f.good, __ATOMIC_RELAXED) > 0;
		mr_report_unserve();
		__atomic_store_n(&fx.gone, true, __ATOMIC_RELAXED);
		usleep(2000);
	}
	__atomic_store_n(&f.stop, 1, __ATOMIC_RELAXED);
	for (size_t i = 0; i < CLIENTS; i++)
		pthread_join(client[i], NULL);
	assert_int_equal(fx.asked_when_gone, 0);
	assert_true(f.good > 0);
}

static void *fetch_and_compare(void *arg)
{
	const json_t *expected = arg;
	struct mr_err err = {0};
	uintptr_t wrong = 0;

	for (int i = 0; i < 20; i++) {
		json_t *report = NULL;

		wrong += fetch_big(&report, &err) != 0 || !json_equal(report, expected);
		json_decref(report);
	}
	if (wrong != 0)
		fprintf(stderr, "%s\n", err.msg);
	return (void *)wrong;
}

static void several_clients_at_one_time_get_their_own_answers(void **state)
{
	enum {
		CLIENTS = 4
	};
	static struct fixture fx = {.stages = 2, .evidence = 2};
	struct mr_report_source src = fixture_source(&fx, "big", 8);
	json_t *expected = mr_report_json(&src);
	pthread_t client[CLIENTS];
	uintptr_t wrong = 0;

	(void)state;
	assert_int_equal(mr_report_serve(&src, NULL), 0);
	for (size_t i = 0; i < CLIENTS; i++)
		assert_int_equal(pthread_create(&client[i], NULL, fetch_and_compare, expected), 0);
	for (size_t i = 0; i < CLIENTS; i++) {
		void *result;

		pthread_join(client[i], &result);
		wrong += (uintptr_t)result;
	}
	assert_int_equal(wrong, 0);
	json_decref(expected);
	mr_report_unserve();
}

static int open_socket(const char *name, const char *suffix, struct sockaddr_un *ret_at)
{
	char dir[96];

	snprintf(dir, sizeof(dir), "%s/dpdk", runtime_dir);
	mkdir(dir, 0700);
	snprintf(dir, sizeof(dir), "%s/dpdk/millrace-%s", runtime_dir, name);
	mkdir(dir, 0700);
	memset(ret_at, 0, sizeof(*ret_at));
	ret_at->sun_family = AF_UNIX;
	snprintf(ret_at->sun_path, sizeof(ret_at->sun_path), "%.80s/dpdk_telemetry.v2%s", dir,
		suffix);
	unlink(ret_at->sun_path);
	return socket(AF_UNIX, SOCK_SEQPACKET, 0);
}

static void a_client_that_leaves_early_does_not_end_the_instance(void **state)
{
	struct mr_report_source src = fixture_source(&big, "big", 16);
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	struct sigaction now;
	json_t *report;

	(void)state;
	assert_int_equal(mr_report_serve(&src, NULL), 0);
	assert_int_equal(sigaction(SIGPIPE, NULL, &now), 0);
	assert_true(now.sa_handler == SIG_IGN);
	snprintf(at.sun_path, sizeof(at.sun_path), "%s/dpdk/millrace-big/dpdk_telemetry.v2",
		runtime_dir);
	for (int i = 0; i < 50; i++) {
		char greeting[1024];
		int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

		assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
		/* 0: the places of the clients before are not free again yet */
		if (read(fd, greeting, sizeof(greeting)) > 0)
			assert_true(write(fd, "/millrace/lanes", 15) == 15);
		close(fd);
	}
	usleep(100000);
	assert_int_equal(fetch_big(&report, NULL), 0);
	json_decref(report);
	mr_report_unserve();
}

static void no_socket_and_a_stale_socket_mean_not_running(void **state)
{
	struct mr_err err = {0};
	struct sockaddr_un at;
	json_t *report;
	int fd;

	(void)state;
	assert_int_equal(mr_report_fetch("nobody", &report, &err), -ENOENT);
	assert_string_equal(err.msg, "no instance 'nobody' is running");
	fd = open_socket("killed", "", &at);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	close(fd); /* the file stays, as after SIGKILL */
	assert_int_equal(access(at.sun_path, F_OK), 0);
	assert_int_equal(mr_report_fetch("killed", &report, &err), -ENOENT);
	assert_string_equal(err.msg, "no instance 'killed' is running");
	unlink(at.sun_path);
}

static void a_name_that_is_a_path_is_not_looked_up(void **state)
{
	struct mr_err err = {0};
	json_t *report;

	(void)state;
	assert_int_equal(mr_report_fetch("../big", &report, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "'../big' is not the name of an instance"));
	assert_int_equal(mr_report_fetch("", &report, &err), -ENOENT);
	assert_int_equal(
		mr_report_fetch("a_name_that_is_longer_than_any_can_be", &report, &err), -ENOENT);
}

/* A server that follows a script: what it sends on connection and for requests. */
#define GREETING "{\"version\":\"DPDK 22.11\",\"pid\":1,\"max_output_len\":16384}"
#define I_AM(name, lanes)                                                                          \
	"{\"/millrace/instance\":{\"name\":\"" name "\",\"version\":\"0.0.9\",\"lanes\":" lanes    \
	",\"ports\":0,\"devices\":0}}"

struct script {
	const char *greeting;  /* NULL: hang up at once, "": say nothing */
	const char *answer[8]; /* to the first, second, ... request; then hang up */
	bool repeat_last;
	uint32_t delay_ms; /* before every answer */
	int listener;
	pthread_t thread;
	struct sockaddr_un at;
};

static void serve_client(const struct script *s, int fd)
{
	char request[256];
	size_t n = 0;

	if (s->greeting == NULL)
		return;
	if (s->greeting[0] != '\0' && send(fd, s->greeting, strlen(s->greeting), MSG_NOSIGNAL) < 0)
		return;
	while (recv(fd, request, sizeof(request), 0) > 0 && s->answer[n] != NULL) {
		usleep(s->delay_ms * 1000);
		if (send(fd, s->answer[n], strlen(s->answer[n]), MSG_NOSIGNAL) < 0)
			return;
		if (s->answer[n + 1] != NULL || !s->repeat_last)
			n++;
	}
}

static void *follow_script(void *arg)
{
	struct script *s = arg;
	int fd;

	while ((fd = accept(s->listener, NULL, NULL)) >= 0) {
		serve_client(s, fd);
		close(fd);
	}
	return NULL;
}

static void start_script(struct script *s, const char *name, const char *suffix)
{
	s->listener = open_socket(name, suffix, &s->at);
	assert_int_equal(bind(s->listener, (struct sockaddr *)&s->at, sizeof(s->at)), 0);
	assert_int_equal(listen(s->listener, 1), 0);
	assert_int_equal(pthread_create(&s->thread, NULL, follow_script, s), 0);
}

static void stop_script(struct script *s)
{
	shutdown(s->listener, SHUT_RDWR);
	pthread_join(s->thread, NULL);
	close(s->listener);
	unlink(s->at.sun_path);
}

/* Runs one fetch against the script and checks code, words and time. */
static void expect_failure(struct script s, int code, const char *words, uint64_t max_ms)
{
	struct mr_err err = {0};
	uint64_t begun;
	json_t *report;
	int rc;

	start_script(&s, "odd", "");
	begun = mr_clock_ns();
	rc = mr_report_fetch("odd", &report, &err);
	begun = mr_clock_ns() - begun;
	stop_script(&s);
	if (rc != code || strstr(err.msg, words) == NULL)
		fprintf(stderr, "got %d: %s\n", rc, err.msg);
	assert_int_equal(rc, code);
	assert_int_equal(err.code, code);
	assert_null(report);
	assert_non_null(strstr(err.msg, words));
	assert_non_null(strstr(err.msg, "'odd'"));
	assert_true(begun / 1000000 <= max_ms);
}

static void a_server_that_hangs_up_gives_a_sentence(void **state)
{
	(void)state;
	expect_failure((struct script){.greeting = NULL}, -ECONNRESET, "hung up", 1000);
	expect_failure((struct script){.greeting = GREETING}, -ECONNRESET, "hung up", 1000);
	expect_failure((struct script){.greeting = GREETING, .answer = {I_AM("odd", "1")}},
		-ECONNRESET, "hung up", 1000);
}

static void a_server_that_is_silent_is_given_up_after_two_seconds(void **state)
{
	(void)state;
	expect_failure((struct script){.greeting = ""}, -ETIMEDOUT, "does not answer", 3000);
	expect_failure((struct script){.greeting = GREETING, .answer = {""}, .delay_ms = 2500},
		-ETIMEDOUT, "does not answer", 3000);
}

static void a_server_that_answers_slowly_is_given_up_in_the_end(void **state)
{
	/* Each answer comes in time, and is always that of somebody else. */
	(void)state;
	expect_failure((struct script){.greeting = GREETING,
			       .answer = {I_AM("odd", "200"), I_AM("odd", "200"),
				       "{\"/millrace/lanes\":null}"},
			       .repeat_last = true,
			       .delay_ms = 1900},
		-ETIMEDOUT, "does not answer", 13000);
}

static void a_server_that_never_accepts_is_given_up_after_two_seconds(void **state)
{
	struct sockaddr_un at;
	struct mr_err err = {0};
	json_t *report;
	uint64_t begun = mr_clock_ns();
	int fd = open_socket("odd", "", &at);
	int held[8];

	(void)state;
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 0), 0);
	/* Fill the backlog, so that connect() itself would wait. */
	for (size_t i = 0; i < MR_ARRAY_LEN(held); i++) {
		held[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
		(void)!connect(held[i], (struct sockaddr *)&at, sizeof(at));
	}
	assert_int_equal(mr_report_fetch("odd", &report, &err), -ETIMEDOUT);
	assert_non_null(strstr(err.msg, "does not accept"));
	assert_true(mr_clock_ns() - begun < 3000000000u);
	for (size_t i = 0; i < MR_ARRAY_LEN(held); i++)
		close(held[i]);
	close(fd);
	unlink(at.sun_path);
}

static void replies_that_are_not_json_or_too_long_give_a_sentence(void **state)
{
	static char huge[100001], deep[12001];

	(void)state;
	memset(huge, ' ', sizeof(huge) - 1);
	memset(deep, '[', sizeof(deep) - 1);
	expect_failure(
		(struct script){.greeting = "220 smtp ready\r\n"}, -EPROTO, "no JSON object", 1000);
	expect_failure((struct script){.greeting = "[1,2]"}, -EPROTO, "no JSON object", 1000);
	expect_failure((struct script){.greeting = huge}, -EPROTO, "100000 bytes", 1000);
	expect_failure((struct script){.greeting = deep}, -EPROTO, "no JSON object", 1000);
	expect_failure((struct script){.greeting = GREETING, .answer = {"{\"/millrace/inst"}},
		-EPROTO, "no JSON object", 1000);
	expect_failure((struct script){.greeting = GREETING, .answer = {"{\"/other\":1}"}}, -EPROTO,
		"something else", 1000);
}

static void answers_that_lie_give_a_sentence(void **state)
{
	(void)state;
	expect_failure((struct script){.greeting = GREETING, .answer = {I_AM("other", "1")}},
		-ENOENT, "no instance", 1000);
	expect_failure((struct script){.greeting = GREETING,
			       .answer = {"{\"/millrace/instance\":{\"name\":7}}"}},
		-EPROTO, "name and version", 1000);
	expect_failure(
		(struct script){.greeting = GREETING,
			.answer = {"{\"/millrace/"
				   "instance\":{\"name\":\"odd\",\"version\":\"\\u001b[2J\"}}"}},
		-EPROTO, "name and version", 1000);
	expect_failure((struct script){.greeting = GREETING,
			       .answer = {I_AM("odd", "4000000000"), I_AM("odd", "4000000000")},
			       .repeat_last = true},
		-EPROTO, "without 'lanes'", 1000);
	expect_failure(
		(struct script){
			.greeting = GREETING, .answer = {I_AM("odd", "-1")}, .repeat_last = true},
		-EPROTO, "without 'lanes'", 1000);
	expect_failure((struct script){.greeting = GREETING,
			       .answer = {I_AM("odd", "2"), I_AM("odd", "2"),
				       "{\"/millrace/lanes\":{\"0\":\"l0\"}}"}},
		-EPROTO, "without '1'; it runs version 0.0.9", 1000);
	/* A string whose escapes are broken, and one without an end. */
	expect_failure((struct script){.greeting = GREETING,
			       .answer = {I_AM("odd", "1"), I_AM("odd", "1"),
				       "{\"/millrace/lanes\":{\"0\":\"a\\\"b\"}}"}},
		-EPROTO, "without '0'", 1000);
	expect_failure((struct script){.greeting = GREETING,
			       .answer = {I_AM("odd", "1"), I_AM("odd", "1"),
				       "{\"/millrace/lanes\":{\"0\":\"l0\"}}",
				       "{\"/millrace/lane\":{\"name\":\"l1\"}}"},
			       .repeat_last = true},
		-ECONNRESET, "does not answer /millrace/lane,l0", 1000);
	expect_failure((struct script){.greeting = GREETING,
			       .answer = {I_AM("odd", "1"), I_AM("odd", "1"),
				       "{\"/millrace/lanes\":{\"0\":\"l0\"}}",
				       "{\"/millrace/lane\":{\"name\":\"l0\"}}"},
			       .repeat_last = true},
		-EPROTO, "/millrace/lane without 'state'", 1000);
}

static void a_socket_with_a_suffix_is_found_behind_a_stale_one(void **state)
{
	struct script s = {
		.greeting = GREETING, .answer = {I_AM("twin", "0")}, .repeat_last = true};
	struct mr_err err = {0};
	struct sockaddr_un at;
	json_t *report;
	int fd = open_socket("twin", "", &at);
	int rc;

	(void)state;
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	close(fd);
	start_script(&s, "twin", ":1");
	/* It has no list of lanes: the socket was found and spoken to. */
	rc = mr_report_fetch("twin", &report, &err);
	stop_script(&s);
	unlink(at.sun_path);
	assert_int_equal(rc, -EPROTO);
	assert_non_null(strstr(err.msg, "answered /millrace/lanes with something else"));
}

static void find_tells_none_one_and_several_apart(void **state)
{
	struct script a = {.greeting = GREETING, .answer = {I_AM("a", "0")}, .repeat_last = true};
	struct script b = {.greeting = GREETING, .answer = {I_AM("b", "0")}, .repeat_last = true};
	struct script mute = {.greeting = NULL};
	char name[MR_NAME_MAX];
	struct mr_err err = {0};
	const char *before = getenv("RUNTIME_DIRECTORY");
	char own[64];

	(void)state;
	/* Away from this process's own socket. */
	snprintf(own, sizeof(own), "%s/elsewhere", before);
	mkdir(own, 0700);
	setenv("RUNTIME_DIRECTORY", own, 1);
	assert_int_equal(mr_report_find(name, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "millrace run"));
	setenv("RUNTIME_DIRECTORY", runtime_dir, 1);

	/* This process has a socket but serves nothing: the others are preferred. */
	start_script(&a, "a", "");
	start_script(&mute, "mute", "");
	assert_int_equal(mr_report_find(name, &err), 0);
	assert_string_equal(name, "a");
	start_script(&b, "b", "");
	assert_int_equal(mr_report_find(name, &err), -EEXIST);
	assert_non_null(strstr(err.msg, "--name"));
	assert_non_null(strstr(err.msg, "(a, b)"));
	stop_script(&a);
	stop_script(&b);
	stop_script(&mute);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fetched_report_equals_the_local_one_for_16_lanes_of_8_stages),
		cmocka_unit_test(a_reload_is_waited_for_and_says_all_that_refused_it),
		cmocka_unit_test(a_second_source_is_refused_until_the_first_has_gone),
		cmocka_unit_test(an_unserved_instance_answers_with_a_sentence),
		cmocka_unit_test(the_source_is_never_asked_after_unserve),
		cmocka_unit_test(several_clients_at_one_time_get_their_own_answers),
		cmocka_unit_test(a_client_that_leaves_early_does_not_end_the_instance),
		cmocka_unit_test(no_socket_and_a_stale_socket_mean_not_running),
		cmocka_unit_test(a_name_that_is_a_path_is_not_looked_up),
		cmocka_unit_test(a_server_that_hangs_up_gives_a_sentence),
		cmocka_unit_test(a_server_that_is_silent_is_given_up_after_two_seconds),
		cmocka_unit_test(a_server_that_answers_slowly_is_given_up_in_the_end),
		cmocka_unit_test(a_server_that_never_accepts_is_given_up_after_two_seconds),
		cmocka_unit_test(replies_that_are_not_json_or_too_long_give_a_sentence),
		cmocka_unit_test(answers_that_lie_give_a_sentence),
		cmocka_unit_test(a_socket_with_a_suffix_is_found_behind_a_stale_one),
		cmocka_unit_test(find_tells_none_one_and_several_apart),
	};

	return cmocka_run_group_tests(tests, start_dpdk, stop_dpdk);
}
