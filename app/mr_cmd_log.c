/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_cmd_log.h"

#include "mr_cmd.h"
#include "mr_cmd_journal.h"

#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#define NUMBER_MAX 24
#define SENTENCE_MAX 512
#define LOOK_NS 10000000u
#define STEP_NS 900000000ll /* what no slewing does between two looks; a leap second is more */
#define PATHS_MAX (MR_LANES_MAX * (MR_NAME_MAX + sizeof(" unproven")))

static bool has_reader(void)
{
	struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};

	return poll(&p, 1, 0) != 0;
}

/* What was not told before comes first. */
static void tell_untold(struct mr_log *log)
{
	if (log->untold > 0 && has_reader() &&
		fprintf(stderr,
			"%smillrace: %u sentences are not here, since nobody read them or there "
			"was no room for them\n",
			log->torn ? "\n" : "", log->untold) > 0) {
		log->untold = 0;
		log->torn = false;
	}
}

void mr_log_note(void *ctx, const char *sentence)
{
	struct mr_log *log = ctx;

	tell_untold(log);
	if (log->untold == 0 && has_reader()) {
		log->torn = fprintf(stderr, "millrace: %s\n", sentence) < 0;
		log->untold += log->torn;
	} else {
		log->untold++;
	}
}

/* As a record, or as a sentence where there is no journal that takes it. */
static void tell(struct mr_log *log, const char *event, int priority, const char *sentence,
	const struct mr_journal_field *fields, size_t count)
{
	if (!mr_journal_record(event, priority, log->instance, sentence, fields, count))
		mr_log_note(log, sentence);
}

static const char *number(uint64_t value, char ret_text[NUMBER_MAX])
{
	snprintf(ret_text, NUMBER_MAX, "%" PRIu64, value);
	return ret_text;
}

void mr_log_running(struct mr_log *log, const struct mr_report_source *src)
{
	char sentence[SENTENCE_MAX], lanes[NUMBER_MAX], paths[PATHS_MAX] = "";
	const struct mr_journal_field fields[] = {
		{"MILLRACE_LANES", number(src->lanes, lanes)}, {"MILLRACE_PATHS", paths}};
	size_t used = 0;

	for (uint32_t i = 0; i < src->lanes; i++) {
		src->lane(src->ctx, i, &log->lane);
		used += (size_t)snprintf(paths + used, sizeof(paths) - used, "%s%s=%s",
			i > 0 ? " " : "", log->lane.name, log->lane.path_verdict);
	}
	snprintf(sentence, sizeof(sentence), "'%s' runs %u lane%s", log->instance, src->lanes,
		src->lanes == 1 ? "" : "s");
	if (!mr_journal_record(
		    "running", LOG_INFO, log->instance, sentence, fields, MR_ARRAY_LEN(fields)))
		fprintf(stderr, "millrace: %s\n", sentence);
}

void mr_log_path(void *ctx, const struct mr_setup_alarm *alarm)
{
	const struct mr_journal_field fields[] = {{"MILLRACE_LANE", alarm->lane},
		{"MILLRACE_BEFORE", alarm->path}, {"MILLRACE_NOW", "unproven"},
		{"MILLRACE_EVIDENCE", alarm->evidence}};
	struct mr_log *log = ctx;

	/* The sentence of what ends the run is told with its end. */
	if (!mr_journal_record("path", LOG_WARNING, log->instance, alarm->sentence, fields,
		    MR_ARRAY_LEN(fields)) &&
		!alarm->stops)
		mr_log_note(log, alarm->sentence);
}

void mr_log_clock(struct mr_log *log)
{
	struct timespec day;
	char sentence[SENTENCE_MAX], step[NUMBER_MAX];
	const struct mr_journal_field field = {"MILLRACE_STEP_MS", step};
	int64_t before_ns = log->day_ns, step_ns;
	uint64_t from_ns = mr_clock_ns();

	clock_gettime(CLOCK_REALTIME, &day);
	/* Another program may have run between the two looks. */
	if (mr_clock_ns() - from_ns > LOOK_NS)
		return;
	log->day_ns = day.tv_sec * 1000000000ll + day.tv_nsec - (int64_t)from_ns;
	step_ns = log->day_ns - before_ns;
	if (before_ns == 0 || (step_ns < STEP_NS && step_ns > -STEP_NS))
		return;
	snprintf(step, sizeof(step), "%" PRId64, step_ns / 1000000);
	snprintf(sentence, sizeof(sentence),
		"the time of day was set %s by %.1f s%s; nothing that is measured or waited for "
		"goes by it",
		step_ns > 0 ? "forward" : "back", fabs((double)step_ns) / 1e9,
		step_ns > 0 ? ", or the machine slept" : "");
	tell(log, "clock", LOG_NOTICE, sentence, &field, 1);
}

void mr_log_change(void *ctx, const struct mr_config_change *change)
{
	const struct mr_journal_field fields[] = {{"MILLRACE_KEY", change->key},
		{"MILLRACE_BEFORE", change->before}, {"MILLRACE_NOW", change->now}};
	char sentence[SENTENCE_MAX];

	snprintf(sentence, sizeof(sentence), "%s: was '%s', is '%s'", change->key, change->before,
		change->now);
	tell(ctx, "reload_key", LOG_INFO, sentence, fields, MR_ARRAY_LEN(fields));
}

void mr_log_reloaded(void *ctx, enum mr_setup_reloaded what, uint32_t tables, const char *sentence)
{
	static const char *const results[] = {"done", "refused", "untaken"};
	char read[NUMBER_MAX];
	const struct mr_journal_field fields[] = {
		{"MILLRACE_RESULT", results[what]}, {"MILLRACE_TABLES", number(tables, read)}};

	tell(ctx, "reload", what == MR_SETUP_RELOADED ? LOG_INFO : LOG_WARNING, sentence, fields,
		MR_ARRAY_LEN(fields));
}

static uint64_t count(struct mr_log *log, const struct mr_report_source *src)
{
	uint64_t in_flight = 0;

	log->sent = log->dropped = 0;
	for (uint32_t i = 0; i < src->lanes; i++) {
		src->lane(src->ctx, i, &log->lane);
		log->sent += log->lane.pub.counters.c[MR_C_tx_packets];
		/* Blank buffers are no packets to whoever asks what a drain cost. */
		log->dropped += mr_counters_dropped(&log->lane.pub.counters) -
			log->lane.pub.counters.c[MR_C_gpu_drop_blank];
		in_flight += log->lane.pub.in_flight;
	}
	return in_flight;
}

void mr_log_stopping(struct mr_log *log, const struct mr_report_source *src, const char *reason,
	uint32_t drain_ms, const char *failure)
{
	char sentence[SENTENCE_MAX], bound[NUMBER_MAX];
	const struct mr_journal_field fields[] = {
		{"MILLRACE_REASON", reason}, {"MILLRACE_DRAIN_MS", number(drain_ms, bound)}};

	(void)count(log, src);
	snprintf(sentence, sizeof(sentence), "stops (%s), and drains for at most %s ms", reason,
		bound);
	if (!mr_journal_record("stopping", failure != NULL ? LOG_ERR : LOG_INFO, log->instance,
		    failure != NULL ? failure : sentence, fields, MR_ARRAY_LEN(fields)) &&
		failure != NULL)
		fprintf(stderr, "millrace: %s\n", failure);
}

void mr_log_drained(
	struct mr_log *log, const struct mr_report_source *src, enum mr_setup_drained how, bool all)
{
	/* Lanes that drained may yet leave something: a kernel that stays. */
	static const char *const results[] = {[MR_SETUP_DRAINED] = "failure",
		[MR_SETUP_DRAIN_TIME] = "time",
		[MR_SETUP_DRAIN_FAST] = "signal",
		[MR_SETUP_DRAIN_FAILED] = "failure"};
	const char *result = all ? "done" : results[how];
	char sentence[SENTENCE_MAX], sent[NUMBER_MAX], dropped[NUMBER_MAX], left[NUMBER_MAX];
	uint64_t sent_before = log->sent, dropped_before = log->dropped;
	uint64_t in_flight = count(log, src);
	const struct mr_journal_field fields[] = {{"MILLRACE_RESULT", result},
		{"MILLRACE_SENT", number(log->sent - sent_before, sent)},
		{"MILLRACE_DROPPED", number(log->dropped - dropped_before, dropped)},
		{"MILLRACE_IN_FLIGHT", number(in_flight, left)}};

	snprintf(sentence, sizeof(sentence),
		"drain (%s): %s packets were sent, %s dropped, and %s are in flight", result, sent,
		dropped, left);
	mr_journal_record("drained", all ? LOG_INFO : LOG_WARNING, log->instance, sentence, fields,
		MR_ARRAY_LEN(fields));
}

void mr_log_stopped(struct mr_log *log, int status)
{
	const char *reason = log->reason != NULL ? log->reason : "error";
	char sentence[SENTENCE_MAX], code[NUMBER_MAX];
	const struct mr_journal_field fields[] = {{"MILLRACE_REASON", reason},
		{"MILLRACE_STATUS", number((uint64_t)status, code)},
		{"MILLRACE_BALANCED", log->balanced ? "yes" : "no"}};

	tell_untold(log);
	snprintf(sentence, sizeof(sentence), "ends with status %s (%s)", code, reason);
	mr_journal_record("stopped", status == MR_EXIT_CLEAN ? LOG_INFO : LOG_ERR, log->instance,
		sentence, fields, MR_ARRAY_LEN(fields) - (log->reason == NULL));
}
