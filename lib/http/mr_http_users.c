/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE 1
#include "mr_http_priv.h"

#include "mr_base.h"
#include "mr_file.h"

#include <crypt.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_MAX_BYTES 512
#define SECOND_NS 1000000000u
#define PEERS 64u

struct user {
	char name[MR_NAME_MAX];
	char hash[CRYPT_OUTPUT_SIZE];
	char known[128]; /* the password that was right, since a scraper asks again and again */
};

struct mr_http_users {
	struct user user[MR_HTTP_USERS_MAX];
	uint32_t count;
	uint8_t guesses[PEERS]; /* wrong ones, in the second that began at since_ns */
	uint64_t since_ns;
	struct crypt_data work;
};

/* Of equal length, it takes as long wherever the first difference is. */
static bool same(const char *a, const char *b)
{
	size_t n = strlen(a);
	unsigned char differ = n != strlen(b);

	if (differ != 0)
		return false;
	for (size_t i = 0; i < n; i++)
		differ |= (unsigned char)(a[i] ^ b[i]);
	return differ == 0;
}

/* A copied hash may have lost its end: one of this setting is as long. */
static bool is_hash(struct mr_http_users *u, const char *text)
{
	const char *made;

	if (strlen(text) >= CRYPT_OUTPUT_SIZE || crypt_checksalt(text) != CRYPT_SALT_OK)
		return false;
	made = crypt_r("", text, &u->work);
	return made != NULL && strlen(made) == strlen(text);
}

static int add_user(
	struct mr_http_users *u, char *line, uint32_t number, const char *file, struct mr_err *err)
{
	char *colon = strchr(line, ':');
	struct user *to = &u->user[u->count];

	line[strcspn(line, "\r\n")] = '\0';
	if (line[0] == '\0' || line[0] == '#')
		return 0;
	if (colon == NULL || colon == line || (size_t)(colon - line) >= sizeof(to->name))
		return mr_err_set(err, -EINVAL,
			"%s:%u: is not NAME:HASH with a name of 1 to %zu characters", file, number,
			sizeof(to->name) - 1);
	*colon = '\0';
	for (uint32_t i = 0; i < u->count; i++)
		if (strcmp(u->user[i].name, line) == 0)
			return mr_err_set(err, -EINVAL, "%s:%u: '%s' was there before; leave one",
				file, number, line);
	if (!is_hash(u, colon + 1))
		return mr_err_set(err, -EINVAL,
			"%s:%u: the hash of '%s' is none of crypt(5); make one with `openssl "
			"passwd "
			"-6`",
			file, number, line);
	if (u->count == MR_HTTP_USERS_MAX)
		return mr_err_set(
			err, -EINVAL, "%s:%u: more than %u users", file, number, MR_HTTP_USERS_MAX);
	memcpy(to->name, line, strlen(line) + 1);
	memcpy(to->hash, colon + 1, strlen(colon + 1) + 1);
	u->count++;
	return 0;
}

static int read_lines(struct mr_http_users *u, FILE *f, const char *file, struct mr_err *err)
{
	char line[LINE_MAX_BYTES];
	uint32_t number = 0;
	int rc = 0;

	while (rc == 0 && fgets(line, sizeof(line), f) != NULL) {
		number++;
		if (strchr(line, '\n') == NULL && !feof(f))
			rc = mr_err_set(err, -EINVAL, "%s:%u: is longer than a user's line can be",
				file, number);
		else
			rc = add_user(u, line, number, file, err);
	}
	if (rc == 0 && u->count == 0)
		rc = mr_err_set(err, -EINVAL, "%s: names no user, so nobody could ask", file);
	return rc;
}

int mr_http_users_read(const char *file, struct mr_http_users **ret_users, struct mr_err *err)
{
	struct mr_http_users *u = calloc(1, sizeof(*u));
	struct mr_err why = {0};
	struct stat st;
	FILE *f = NULL;
	int fd = -1, rc;

	if (u == NULL)
		return mr_err_set(err, -ENOMEM, "out of memory for users");
	rc = mr_file_open(file, &fd, &why);
	if (rc < 0)
		mr_err_set(err, rc, "users '%s' %s", file, why.msg);
	else if (fstat(fd, &st) != 0 || (st.st_mode & 07) != 0)
		rc = mr_err_set(err, -EACCES, "users '%s' may be read by others: `chmod o= %s`",
			file, file);
	else
		f = fdopen(fd, "r");
	if (f != NULL)
		rc = read_lines(u, f, file, err);
	if (f != NULL)
		fclose(f);
	else if (fd >= 0)
		close(fd);
	if (rc == 0)
		*ret_users = u;
	else
		mr_http_users_free(u);
	return rc;
}

void mr_http_users_free(struct mr_http_users *u)
{
	if (u != NULL)
		explicit_bzero(u, sizeof(*u));
	free(u);
}

enum mr_http_access mr_http_users_ask(struct mr_http_users *u, uint32_t peer, const char *name,
	const char *password, uint64_t now_ns)
{
	uint8_t *guesses = &u->guesses[peer % PEERS];
	struct user *user = NULL;
	const char *hash;

	if (name == NULL || password == NULL)
		return MR_HTTP_DENIED;
	for (uint32_t i = 0; i < u->count; i++)
		if (strcmp(u->user[i].name, name) == 0)
			user = &u->user[i];
	if (user != NULL && user->known[0] != '\0' && same(password, user->known))
		return MR_HTTP_GRANTED;
	if (now_ns - u->since_ns >= SECOND_NS) {
		u->since_ns = now_ns;
		memset(u->guesses, 0, sizeof(u->guesses));
	}
	if (*guesses >= MR_HTTP_GUESSES)
		return MR_HTTP_LATER;
	/* An unknown name takes as long as a wrong password. */
	hash = crypt_r(password, user != NULL ? user->hash : u->user[0].hash, &u->work);
	if (user != NULL && hash != NULL && same(hash, user->hash)) {
		if (strlen(password) < sizeof(user->known))
			memcpy(user->known, password, strlen(password) + 1);
		return MR_HTTP_GRANTED;
	}
	++*guesses;
	return MR_HTTP_DENIED;
}
