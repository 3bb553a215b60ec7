/* SPDX-License-Identifier: BSD-3-Clause */
/* What is missing of a lane's proof, where all else of it is there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mr_setup_priv.h"

/* A lane that goes from a port over software to one that is not, whose evidence is all there. */
static struct mr_setup *proven_lane(struct mr_plan *p)
{
	static struct mr_setup s;

	memset(&s, 0, sizeof(s));
	memset(p, 0, sizeof(*p));
	s.plan = p;
	p->devices_count = p->lanes_count = 1;
	p->devices[0].sim = true;
	p->ports_count = 2;
	p->lanes[0].rx_path = p->lanes[0].tx_path = MR_PATH_DIRECT;
	p->lanes[0].tx[0].port = 1;
	p->lanes[0].tx_count = 1;
	s.ports[0].software = true;
	mr_proof_set(&s.proof.memory[0][MR_PATH_DIRECT], MR_PASS, "there");
	mr_proof_set(&s.proof.window[0][MR_PATH_DIRECT], MR_PASS, "seen");
	mr_proof_set(&s.proof.readback[0], MR_PASS, "back at 0");
	mr_proof_set(&s.proof.readback[1], MR_PASS, "back at 1");
	s.proof.arrived[0][0][MR_PATH_DIRECT] = true;
	return &s;
}

static void assert_unproven(struct mr_setup *s, const char *words)
{
	struct mr_proof told;
	enum mr_check_verdict v;
	enum mr_proof_kind why;

	assert_false(mr_setup_proof_lane(s, 0, &why, &v));
	assert_int_equal(why, MR_PROOF_READBACK);
	assert_int_equal(v, MR_NA);
	mr_setup_proof_tell(s, 0, &told);
	assert_int_equal(told.verdict, MR_UNKNOWN);
	if (strstr(told.value, words) == NULL)
		fail_msg("'%s' is not in: %s", words, told.value);
}

static void a_port_that_was_not_tried_is_not_made_up_for_by_one_that_was(void **state)
{
	static struct mr_plan p;

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		struct mr_setup *s = proven_lane(&p);
		enum mr_check_verdict v;
		enum mr_proof_kind why;

		assert_true(mr_setup_proof_lane(s, 0, &why, &v));
		s->proof.readback[i] = (struct mr_proof){0};
		mr_proof_set(&s->proof.readback[i], MR_NA, "not offered");
		assert_unproven(s, "not offered");
		s->proof.readback[!i] = (struct mr_proof){0};
		mr_proof_set(&s->proof.readback[!i], MR_FAIL, "lost");
		assert_false(mr_setup_proof_lane(s, 0, &why, &v));
		assert_int_equal(v, MR_FAIL);
	}
}

/* A port's frames came in at its first queue, into another lane's memory. */
static void a_lane_into_whose_memory_no_frame_came_is_not_proven(void **state)
{
	static struct mr_plan p;
	struct mr_setup *s = proven_lane(&p);

	(void)state;
	s->proof.arrived[0][0][MR_PATH_DIRECT] = false;
	s->proof.arrived[0][0][MR_PATH_PINNED] = s->proof.arrived[0][1][MR_PATH_DIRECT] = true;
	s->proof.arrived[1][0][MR_PATH_DIRECT] = true;
	assert_unproven(s, "no test frame came into the memory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_port_that_was_not_tried_is_not_made_up_for_by_one_that_was),
		cmocka_unit_test(a_lane_into_whose_memory_no_frame_came_is_not_proven),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
