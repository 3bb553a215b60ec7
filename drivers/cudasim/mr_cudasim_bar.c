/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_cudasim_priv.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SIM_PCI_BARS 6
#define SIM_PCI_MEMORY 0x200u /* IORESOURCE_MEM, linux/ioport.h */

/* dddd:bb:dd.f, in hexadecimal digits. */
static bool is_address(const char *text)
{
	static const char form[] = "xxxx:xx:xx.x";
	size_t i;

	for (i = 0; form[i] != '\0'; i++)
		if (form[i] == 'x' ? !isxdigit((unsigned char)text[i]) : form[i] != text[i])
			return false;
	return text[i] == '\0';
}

int mr_sim_bar_parse(const char *value, char ret_address[SIM_ADDRESS_BYTES], struct mr_err *err)
{
	if (!is_address(value))
		return mr_err_set(err, -EINVAL,
			"software device: bar=%s is neither a size nor the address of a PCI "
			"device; "
			"write for example bar=256MiB or bar=0000:00:04.0",
			value);
	snprintf(ret_address, SIM_ADDRESS_BYTES, "%s", value);
	return 0;
}

static void sysfs_path(char *path, size_t size, const char *address, const char *file)
{
	snprintf(path, size, "/sys/bus/pci/devices/%s/%s", address, file);
}

/* The largest memory BAR: a line per BAR, each with first address, last address and flags. */
static int find_bar(const char *address, unsigned int *ret_bar, size_t *ret_bytes)
{
	char path[96];
	FILE *f;

	sysfs_path(path, sizeof(path), address, "resource");
	f = fopen(path, "re");
	if (f == NULL)
		return -errno;
	*ret_bytes = 0;
	for (unsigned int i = 0; i < SIM_PCI_BARS; i++) {
		unsigned long long first, last, flags;

		if (fscanf(f, "%llx %llx %llx", &first, &last, &flags) != 3)
			break;
		if ((flags & SIM_PCI_MEMORY) == 0 || last <= first || last - first < *ret_bytes)
			continue;
		*ret_bar = i;
		*ret_bytes = (size_t)(last - first) + 1;
	}
	fclose(f);
	return *ret_bytes >= SIM_PAGE ? 0 : -ENXIO;
}

/* Without this a device that no driver has claimed does not answer on the bus. */
static int enable(const char *address)
{
	char path[96];
	int fd, rc = 0;

	sysfs_path(path, sizeof(path), address, "enable");
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, "1", 1) != 1)
		rc = -errno;
	close(fd);
	return rc;
}

int mr_sim_bar_open(struct sim_device *dev, struct mr_err *err)
{
	const char *address = dev->options.bar_address;
	unsigned int bar = 0;
	size_t bytes = 0;
	char file[24], path[96];
	int rc = find_bar(address, &bar, &bytes);

	if (rc != 0)
		return mr_err_set(err, rc,
			"software device: bar=%s: %s; lspci -D lists the devices, and -v their "
			"memory",
			address,
			rc == -ENXIO ? "the device has no memory BAR of 64KiB or more"
				     : strerror(-rc));
	if (dev->options.mem_given && dev->options.mem_bytes > bytes)
		return mr_err_set(err, -E2BIG,
			"software device: mem=%zu is more than the %zu bytes of BAR %u of %s; "
			"leave mem out, or give less",
			dev->options.mem_bytes, bytes, bar, address);
	if (!dev->options.mem_given)
		dev->options.mem_bytes = bytes - bytes % SIM_PAGE;
	rc = enable(address);
	snprintf(file, sizeof(file), "resource%u", bar);
	sysfs_path(path, sizeof(path), address, file);
	if (rc == 0) {
		dev->arena_fd = open(path, O_RDWR | O_CLOEXEC);
		if (dev->arena_fd >= 0)
			return 0;
		rc = -errno;
	}
	return mr_err_set(err, rc,
		"software device: BAR %u of %s cannot be opened: %s; it needs root, and a kernel "
		"that is not locked down",
		bar, address, strerror(-rc));
}

/* A mapping may outlive its device, and then reads as ones. */
bool mr_sim_bar_gone(const struct sim_device *dev)
{
	char path[96];

	if (dev->options.bar_address[0] == '\0')
		return false;
	sysfs_path(path, sizeof(path), dev->options.bar_address, "vendor");
	return access(path, F_OK) != 0 && errno == ENOENT;
}

/*
 * A BAR that is gone may answer an access with SIGBUS. It has to end that block or copy and
 * the device, as a real one that fell off the bus would, and not the process.
 */
static _Thread_local sigjmp_buf sim_bar_way_out;
static _Thread_local volatile sig_atomic_t sim_bar_inside;
static struct sigaction sim_bar_before;

static void bar_gone(int signal_number, siginfo_t *info, void *context)
{
	if (sim_bar_inside)
		siglongjmp(sim_bar_way_out, 1);
	if ((sim_bar_before.sa_flags & SA_SIGINFO) != 0) {
		sim_bar_before.sa_sigaction(signal_number, info, context);
		return;
	}
	/* Whatever it was meets the same access again. */
	sigaction(SIGBUS, &sim_bar_before, NULL);
}

void mr_sim_bar_catch(void)
{
	static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
	static bool caught;
	struct sigaction action = {.sa_sigaction = bar_gone, .sa_flags = SA_SIGINFO};

	pthread_mutex_lock(&once);
	if (!caught)
		caught = sigaction(SIGBUS, &action, &sim_bar_before) == 0;
	pthread_mutex_unlock(&once);
}

bool mr_sim_bar_try(const struct sim_device *dev, void (*work)(void *), void *argument)
{
	if (dev->options.bar_address[0] == '\0') {
		work(argument);
		return true;
	}
	if (sigsetjmp(sim_bar_way_out, 1) != 0) {
		sim_bar_inside = 0;
		return false;
	}
	sim_bar_inside = 1;
	work(argument);
	sim_bar_inside = 0;
	return true;
}
