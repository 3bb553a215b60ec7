/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Captures for a machine that has neither scapy nor Python.
 *
 *     frames make FILE COUNT             writes COUNT frames of 60 to 1514 bytes
 *     frames same WANTED GOT [swapped]   0: GOT has the frames of WANTED, in order, whole
 *
 * With `swapped` the Ethernet addresses are exchanged first, as l2swap does it. Times are
 * not compared. The format is that of libpcap, in this machine's byte order
 * (draft-ietf-opsawg-pcap): here as bytes, so that the judge shares no code with the judged.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAME_MAX 65536u
#define ADDRESS 6u

struct file_header {
	uint32_t magic;
	uint16_t major, minor;
	int32_t zone;
	uint32_t accuracy, longest, link;
};

struct frame_header {
	uint32_t s, fraction, kept, length;
};

static _Noreturn void die(const char *path, const char *why)
{
	fprintf(stderr, "%s: %s\n", path, why);
	exit(1);
}

static uint32_t draw(void)
{
	static uint64_t state = 88172645463325252ull;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 32);
}

static void make(const char *path, uint32_t count)
{
	static const struct file_header top = {0xa1b2c3d4, 2, 4, 0, 0, FRAME_MAX - 1, 1};
	static uint8_t frame[FRAME_MAX];
	FILE *f = fopen(path, "wb");

	if (f == NULL)
		die(path, "cannot be written");
	fwrite(&top, sizeof(top), 1, f);
	for (uint32_t i = 0; i < count; i++) {
		/* Both bounds are among them. */
		const uint32_t bytes = i == 0 ? 60 : i == 1 ? 1514 : 60 + draw() % 1455;
		const struct frame_header h = {i / 1000000, i % 1000000, bytes, bytes};

		for (uint32_t k = 0; k < bytes; k++)
			frame[k] = (uint8_t)draw();
		fwrite(&h, sizeof(h), 1, f);
		fwrite(frame, bytes, 1, f);
	}
	if (ferror(f) || fclose(f) != 0)
		die(path, "cannot be written");
}

static FILE *open_capture(const char *path)
{
	FILE *f = fopen(path, "rb");
	struct file_header top;

	if (f == NULL)
		die(path, "is not there");
	if (fread(&top, sizeof(top), 1, f) != 1 ||
		(top.magic != 0xa1b2c3d4 && top.magic != 0xa1b23c4d))
		die(path, "is no capture");
	return f;
}

/* The next frame's length, 0 at the end. */
static uint32_t next(FILE *f, const char *path, uint8_t *ret_frame)
{
	struct frame_header h;

	if (fread(&h, 1, sizeof(h), f) != sizeof(h)) {
		if (!feof(f) || ftell(f) < 0)
			die(path, "cannot be read");
		return 0;
	}
	if (h.kept != h.length || h.length == 0 || h.length >= FRAME_MAX ||
		fread(ret_frame, h.length, 1, f) != 1)
		die(path, "has a frame that is cut short");
	return h.length;
}

static void swap(uint8_t *frame)
{
	uint8_t to[ADDRESS];

	memcpy(to, frame, ADDRESS);
	memcpy(frame, frame + ADDRESS, ADDRESS);
	memcpy(frame + ADDRESS, to, ADDRESS);
}

static int same(const char *wanted, const char *got, bool swapped)
{
	static uint8_t frame[2][FRAME_MAX];
	FILE *f[2] = {open_capture(wanted), open_capture(got)};
	uint32_t count = 0;

	for (;; count++) {
		const uint32_t want = next(f[0], wanted, frame[0]);
		const uint32_t have = next(f[1], got, frame[1]);

		if (want == 0 && have == 0)
			break;
		if (swapped && want >= 2 * ADDRESS)
			swap(frame[0]);
		if (want == have && memcmp(frame[0], frame[1], want) == 0)
			continue;
		fprintf(stderr, "%s: frame %u has %u bytes for %u%s\n", got, count, have, want,
			have == want ? ", and others" : "");
		return 1;
	}
	if (count == 0)
		die(wanted, "has no frame");
	printf("%s: %u frames are the same\n", got, count);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "make") == 0)
		make(argv[2], (uint32_t)atoi(argv[3]));
	else if (argc >= 4 && argc <= 5 && strcmp(argv[1], "same") == 0 &&
		(argc == 4 || strcmp(argv[4], "swapped") == 0))
		return same(argv[2], argv[3], argc == 5);
	else
		die("usage", "frames make FILE COUNT | same WANTED GOT [swapped]");
	return 0;
}
