/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_gpu_priv.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define MS 1000000u

/* A job over a driver whose second call takes `takes_ms`. */
struct work {
	uint32_t takes_ms, ends_with; /* ends_with: what the job returns, as -errno */
	uint32_t returned, went_on;   /* after the second call; later: after the third */
};

static mr_cu_result first(int n)
{
	return n;
}

static mr_cu_result second(struct work *w)
{
	usleep(w->takes_ms * 1000);
	mr_store_release(&w->returned, 1);
	return MR_CUDA_ERROR_NOT_READY;
}

static const struct {
	mr_cu_result (*first)(int n);
	mr_cu_result (*second)(struct work *w);
} api = {first, second};

static int job(void *arg, struct mr_err *err)
{
	struct work *w = arg;

	assert_int_equal(MR_GPU_CALL(&api, first, 7), 7);
	assert_int_equal(MR_GPU_CALL(&api, second, w), MR_CUDA_ERROR_NOT_READY);
	mr_store_release(&w->went_on, 1);
	if (w->ends_with != 0)
		return mr_err_set(err, -(int)w->ends_with, "the job's own words");
	return 5;
}

static void a_job_ends_with_its_own_result_and_words(void **state)
{
	struct work w = {.takes_ms = 50};
	struct mr_err err = {0};

	(void)state;
	assert_int_equal(mr_gpu_job("g0", "testing", 10000, job, &w, &err), 5);
	assert_int_equal(err.code, 0);
	w.ends_with = ENOSPC;
	assert_int_equal(mr_gpu_job("g0", "testing", 10000, job, &w, &err), -ENOSPC);
	assert_string_equal(err.msg, "the job's own words");
	/* Without a bound any call may take its time. */
	w.takes_ms = 200;
	assert_int_equal(mr_gpu_job("g0", "testing", 0, job, &w, NULL), -ENOSPC);
	assert_false(mr_gpu_job_left_behind());
}

static void count(void *times)
{
	++*(uint32_t *)times;
}

static void who_waits_for_a_job_goes_on_with_other_work(void **state)
{
	struct work w = {.takes_ms = 300};
	uint32_t timeout_ms = 10000, times = 0;

	(void)state;
	assert_int_equal(
		mr_gpu_job_meanwhile("g0", "testing", &timeout_ms, job, &w, count, &times, NULL),
		5);
	/* Every 20 ms, on a machine that does other things as well. */
	assert_in_range(times, 3, 16);
}

/* The bound is for one call, not for the job. */
static int many(void *arg, struct mr_err *err)
{
	(void)err;
	for (int i = 0; i < 10; i++)
		(void)MR_GPU_CALL(&api, second, (struct work *)arg);
	usleep(400000);
	return 0;
}

static void a_job_of_many_short_calls_may_take_longer_than_one(void **state)
{
	struct work w = {.takes_ms = 60};

	(void)state;
	assert_int_equal(mr_gpu_job("g0", "testing", 300, many, &w, NULL), 0);
	assert_false(mr_gpu_job_left_behind());
}

static void a_call_that_takes_too_long_is_named_and_its_thread_does_no_harm_later(void **state)
{
	/* It stays with the thread, as what is abandoned has to. */
	static struct work w = {.takes_ms = 1500};
	struct mr_err err = {0};
	uint64_t start = mr_clock_ns();

	(void)state;
	assert_int_equal(mr_gpu_job("g0", "testing it", 100, job, &w, &err), -ETIMEDOUT);
	assert_true(mr_clock_ns() - start < 1400ull * MS);
	assert_int_equal(err.code, -ETIMEDOUT);
	if (strstr(err.msg, "device 'g0': second has not returned for 100 ms while testing it") ==
		NULL)
		fail_msg("%s", err.msg);
	assert_true(mr_gpu_job_left_behind());
	/* It returns after all, and stops there. */
	while (mr_load_acquire(&w.returned) == 0)
		usleep(10000);
	usleep(200000);
	assert_int_equal(mr_load_acquire(&w.went_on), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_ends_with_its_own_result_and_words),
		cmocka_unit_test(who_waits_for_a_job_goes_on_with_other_work),
		cmocka_unit_test(a_job_of_many_short_calls_may_take_longer_than_one),
		cmocka_unit_test(
			a_call_that_takes_too_long_is_named_and_its_thread_does_no_harm_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
