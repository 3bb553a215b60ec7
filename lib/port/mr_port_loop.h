/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_port_loop - a frame out of a port and in again, before lanes run.
 *
 * The frame lies where the caller put it, and comes back in a buffer of the port's own
 * receive pool or, from a port that hands buffers on, in the one that was sent. The CPU
 * reads neither: the caller looks at both through the device.
 *
 * Thread   the control thread; between start of the ports and start of the lanes.
 */
#ifndef MR_PORT_LOOP_H
#define MR_PORT_LOOP_H

#include "mr_port.h"

/*
 * mr_port_loop_offered: does all that the port sends come back to it, and to nobody else?
 * args are those of its virtual device. *ret_why says what it does, either way.
 */
bool mr_port_loop_offered(const struct mr_port *p, const char *args, const char **ret_why);

struct mr_port_loop;

MR_MUST_USE int mr_port_loop_open(
	const struct mr_port *p, struct mr_port_loop **ret_loop, struct mr_err *err);
/* NULL is accepted. */
void mr_port_loop_close(struct mr_port_loop *l);

/* The port's own address, to which test frames go. */
void mr_port_loop_mac(const struct mr_port_loop *l, uint8_t ret_mac[6]);

/*
 * mr_port_loop_send sends bytes at addr, which stay as they are until the frame is back
 * or the loop is closed. -EAGAIN: the port took it for wait_ms not.
 */
MR_MUST_USE int mr_port_loop_send(
	struct mr_port_loop *l, void *addr, uint32_t bytes, uint32_t wait_ms);

/*
 * mr_port_loop_receive gives where the next frame lies; it is freed by the next call, and
 * by close. -ETIME: none came for wait_ms.
 */
MR_MUST_USE int mr_port_loop_receive(
	struct mr_port_loop *l, uint32_t wait_ms, const void **ret_addr, uint32_t *ret_bytes);

#endif
