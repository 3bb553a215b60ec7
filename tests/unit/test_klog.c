/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_klog.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* One line after the other to one matcher, and what each must give. */
static const struct {
	const char *line;
	enum mr_klog_effect effect; /* MR_KLOG_NONE: nothing */
	uint32_t xid;
	const char *gpu; /* NULL: nobody is named */
} lines[] = {
	{"usb 1-1: new high-speed USB device", MR_KLOG_NONE, 0, NULL},
	{"NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, name=x, GPU has fallen off the bus.",
		MR_KLOG_LOST, 79, "0000:3b:00.0"},
	{"NVRM: Xid (0000:03:00): 31, Ch 00000003, engmask 00000101, intr 10000000",
		MR_KLOG_PROGRAM, 31, "0000:03:00.0"},
	{"NVRM: Xid (PCI:00000000:3D:00.0): 95, Uncontained ECC error", MR_KLOG_LOST, 95,
		"0000:3d:00.0"},
	{"NVRM: Xid (PCI:10000:e3:00): 48, DBE", MR_KLOG_LOST, 48, "10000:e3:00.0"},
	{"NVRM: Xid (PCI:0000:3b:00): 94, Contained ECC error", MR_KLOG_PROGRAM, 94,
		"0000:3b:00.0"},
	{"NVRM: Xid (PCI:0000:3b:00): 64, Row Remapper Error", MR_KLOG_DAMAGED, 64, "0000:3b:00.0"},
	{"NVRM: Xid (PCI:0000:3b:00): 119, Timeout waiting for RPC from GSP!", MR_KLOG_LOST, 119,
		"0000:3b:00.0"},
	{"NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 "
	 "(GPU Reset Required)",
		MR_KLOG_DAMAGED, 154, "0000:3b:00.0"},
	{"NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x1 (GPU Reset "
	 "Required) to 0x0 (None)",
		MR_KLOG_NONE, 154, "0000:3b:00.0"},
	/* A number that is not in the list, or none. */
	{"NVRM: Xid (PCI:0000:3b:00): 63, Row Remapper: New row", MR_KLOG_NONE, 0, NULL},
	{"NVRM: Xid (PCI:0000:3b:00): ninety", MR_KLOG_NONE, 0, NULL},
	{"NVRM: Xid (PCI:0000:3b:00): 99999999999999999999999, x", MR_KLOG_NONE, 0, NULL},
	{"NVRM: Xid (", MR_KLOG_NONE, 0, NULL},
	{"NVRM: GPU at PCI:0000:3b:00: GPU-0f6a9d5c", MR_KLOG_NONE, 0, NULL},
	/* NVIDIA/NVSentinel #155: a loss that has no number. */
	{"NVRM: GPU 0000:b3:00.0: GPU has fallen off the bus.", MR_KLOG_LOST, 0, "0000:b3:00.0"},
	/* leptonai/gpud #1209: over several lines, or with the breaks written out. */
	{"NVRM: The NVIDIA GPU 0000:b3:00.0", MR_KLOG_NONE, 0, NULL},
	{"NVRM: (PCI ID: 10de:26b5) installed in this system has", MR_KLOG_NONE, 0, NULL},
	{"eth0: 0000:11:00.0 is up", MR_KLOG_NONE, 0, NULL},
	{"NVRM: fallen off the bus and is not responding to commands.", MR_KLOG_LOST, 0,
		"0000:b3:00.0"},
	{"NVRM: The NVIDIA GPU 0000:c4:00.0\\x0aNVRM: (PCI ID: 10de:26b5) installed in this system "
	 "has\\x0aNVRM: fallen off the bus and is not responding to commands.",
		MR_KLOG_LOST, 0, "0000:c4:00.0"},
	/* What was named long ago is not meant any more. */
	{"NVRM: one", MR_KLOG_NONE, 0, NULL},
	{"NVRM: two", MR_KLOG_NONE, 0, NULL},
	{"NVRM: three", MR_KLOG_NONE, 0, NULL},
	{"NVRM: four", MR_KLOG_NONE, 0, NULL},
	{"NVRM: 12:34:56 fallen off the bus.", MR_KLOG_LOST, 0, NULL},
	/* Others may speak of buses, too. */
	{"pcieport 0000:3a:00.0: device has fallen off the bus", MR_KLOG_NONE, 0, NULL},
};

/* NVIDIA/NVSentinel #155: a loss is logged without a number, over several lines. */
static void every_form_of_message_names_its_gpu_and_effect(void **state)
{
	struct mr_klog k = {0};

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(lines); i++) {
		struct mr_klog_event e = {0};
		char gpu[MR_PCI_ADDR_BYTES];
		bool found = mr_klog_match(&k, lines[i].line, &e);

		bool wanted = lines[i].effect != MR_KLOG_NONE || lines[i].xid != 0;

		if (found != wanted || e.recovered != (found && e.effect == MR_KLOG_NONE) ||
			e.effect != lines[i].effect || e.xid != lines[i].xid ||
			e.named != (lines[i].gpu != NULL))
			fail_msg("'%s': effect %d, Xid %u, named %d", lines[i].line, e.effect,
				e.xid, e.named);
		if (!e.named)
			continue;
		mr_pci_addr_format(&e.gpu, gpu);
		assert_string_equal(gpu, lines[i].gpu);
	}
}

static void the_text_is_printable_and_of_one_line(void **state)
{
	struct mr_klog k = {0};
	struct mr_klog_event e;
	char line[1000];

	(void)state;
	assert_true(mr_klog_match(
		&k, "x NVRM: a\\x0aNVRM: fallen off the bus \x1b[31m\xff.\nnext", &e));
	assert_string_equal(e.text, "NVRM: a NVRM: fallen off the bus ?[31m?.");
	memset(line, 'a', sizeof(line) - 1);
	line[sizeof(line) - 1] = '\0';
	memcpy(line, "NVRM: fallen off the bus ", 25);
	assert_true(mr_klog_match(&k, line, &e));
	assert_int_equal(strlen(e.text), MR_KLOG_TEXT_BYTES - 1);
}

static void append(int fd, const char *text)
{
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void only_what_the_kernel_says_from_now_on_is_read(void **state)
{
	static struct mr_klog_reader r;
	char path[] = "/tmp/mr-klog-XXXXXX", longest[10000];
	int fd = mkstemp(path);
	struct mr_klog_event e;

	(void)state;
	assert_true(fd >= 0);
	append(fd, "4,1,1,-;NVRM: Xid (PCI:0000:3b:00): 79, before\n");
	assert_int_equal(mr_klog_open(&r, path), 0);
	assert_false(mr_klog_next(&r, &e));
	append(fd,
		"4,2,2,-;NVRM: Xid (PCI:0000:3b:00): 48, first\n"
		" SUBSYSTEM=NVRM: Xid (PCI:0000:3b:00): 79, a field\n"
		"12,3,3,-;NVRM: Xid (PCI:0000:3b:00): 79, by a program\n"
		"6,4,4,c;nothing\n"
		"4,4,4,-;NVRM: Xid (PCI:0000:3b:00): 154, changed from 0x1 to 0x0 (None)\n"
		"[ 12.5] NVRM: Xid (PCI:0000:3c:00): 95, as dmesg writes it\n"
		"3,5,5,-;NVRM: Xid (PCI:0000:3d:00): 6");
	assert_true(mr_klog_next(&r, &e));
	assert_string_equal(e.text, "NVRM: Xid (PCI:0000:3b:00): 48, first");
	assert_true(mr_klog_next(&r, &e));
	assert_int_equal(e.xid, 95);
	assert_false(mr_klog_next(&r, &e));
	append(fd, "2, in two pieces\n");
	assert_true(mr_klog_next(&r, &e));
	assert_int_equal(e.xid, 62);
	/* A line that no buffer holds is lost, the next is not. */
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	append(fd, longest);
	append(fd, "\n4,6,6,-;NVRM: Xid (PCI:0000:3d:00): 120, after\n");
	assert_true(mr_klog_next(&r, &e));
	assert_int_equal(e.xid, 120);
	assert_false(mr_klog_next(&r, &e));
	mr_klog_close(&r);
	assert_false(mr_klog_next(&r, &e));
	close(fd);
	unlink(path);
	assert_int_equal(mr_klog_open(&r, path), -ENOENT);
}

/* The real log, which nobody here may write to as the kernel does. */
static void the_machines_own_log_is_read_without_waiting(void **state)
{
	static struct mr_klog_reader r;
	struct mr_klog_event e;
	int rc = mr_klog_open(&r, MR_KLOG_FILE);

	(void)state;
	if (rc != 0) {
		assert_true(rc == -EPERM || rc == -EACCES || rc == -ENOENT);
		return;
	}
	while (mr_klog_next(&r, &e))
		;
	assert_true(lseek(r.fd, 0, SEEK_SET) >= 0);
	while (mr_klog_next(&r, &e))
		;
	mr_klog_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_of_message_names_its_gpu_and_effect),
		cmocka_unit_test(the_text_is_printable_and_of_one_line),
		cmocka_unit_test(only_what_the_kernel_says_from_now_on_is_read),
		cmocka_unit_test(the_machines_own_log_is_read_without_waiting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
