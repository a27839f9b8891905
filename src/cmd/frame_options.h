/* SPDX-License-Identifier: BSD-2-Clause */
/* The command-line options that describe frames: one for each field of traffic/spec.h. */
#ifndef HOLDOFF_CMD_FRAME_OPTIONS_H
#define HOLDOFF_CMD_FRAME_OPTIONS_H

#include <argp.h>

#include "traffic/spec.h"

struct cmd_frame_options {
	struct tr_stream_text stream; /* what was given; NULL elsewhere */
	struct tr_spec_text spec;     /* seed and stamp */
	const char *file;             /* YAML; the others win over it */
	bool given;                   /* any of them was */
};

/* A child parser for argp; its input is a zeroed struct cmd_frame_options. */
extern const struct argp cmd_frame_argp;

/* The specification that the options describe. */
int cmd_frame_spec(struct cmd_frame_options *options, struct tr_spec **out, struct ho_err *err);

#endif
