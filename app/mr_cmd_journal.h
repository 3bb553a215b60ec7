/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_cmd_journal - changes of state as records with fields, where stderr is systemd's journal.
 *
 *     MILLRACE_EVENT     what happened
 *     MILLRACE_INSTANCE  whose it is
 *     and what mr_journal_record is given
 *
 * Anywhere else, and where the journal does not take a record at once, it is for who asked to
 * write the sentence to stderr.
 *
 * Thread   any; it keeps nothing.
 * Source   systemd.exec(5) $JOURNAL_STREAM; the journal's native protocol
 *          (systemd.io/JOURNAL_NATIVE_PROTOCOL); systemd.journal-fields(7)
 */
#ifndef MR_CMD_JOURNAL_H
#define MR_CMD_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>

/* A field's name is upper case letters, digits and '_'. */
struct mr_journal_field {
	const char *name, *text;
};

/*
 * mr_journal_record sends a record and does not wait; priority is one of syslog(3). Where a text
 * has several lines they become one. false: there is no journal or it did not take it.
 */
bool mr_journal_record(const char *event, int priority, const char *instance, const char *sentence,
	const struct mr_journal_field *fields, size_t count);

#endif
