// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/frame_options.h"

enum {
	OPT_SEED = 0x400,
	OPT_STAMP,
	OPT_FIELD = 0x1000,
#define FIELD_KEY(member, key, arg, help) OPT_FIELD_##member,
	TR_STREAM_FIELDS(FIELD_KEY)
#undef FIELD_KEY
};

static const struct argp_option frame_table[] = {
	{ NULL, 0, NULL, 0, "Frames (values may be ranges and lists, see holdoff-gen(8)):", 50 },
	{ "file", 'f', "FILE", 0, "Frames from a YAML file; the options below win over it", 50 },
	{ "seed", OPT_SEED, "N", 0, "Of random fields [1]", 50 },
	{ "stamp", OPT_STAMP, "yes|no|auto", 0,
	  "Sequence number and time in each frame [auto: if all have room]", 50 },
#define FIELD_OPTION(member, key, arg, help) { key, OPT_FIELD_##member, arg, 0, help, 51 },
	TR_STREAM_FIELDS(FIELD_OPTION)
#undef FIELD_OPTION
		{ 0 },
};

static error_t parse_frame(int key, char *arg, struct argp_state *state)
{
	struct cmd_frame_options *o = state->input;

	switch (key) {
	case 'f':
		o->file = arg;
		break;
	case OPT_SEED:
		o->spec.seed = arg;
		break;
	case OPT_STAMP:
		o->spec.stamp = arg;
		break;
#define FIELD_CASE(member, key, text, help) \
	case OPT_FIELD_##member:            \
		o->stream.member = arg;     \
		break;
		TR_STREAM_FIELDS(FIELD_CASE)
#undef FIELD_CASE
	default:
		return ARGP_ERR_UNKNOWN;
	}
	o->given = true;
	return 0;
}

const struct argp cmd_frame_argp = { .options = frame_table, .parser = parse_frame };

int cmd_frame_spec(struct cmd_frame_options *options, struct tr_spec **out, struct ho_err *err)
{
	options->spec.streams = &options->stream;
	options->spec.n_streams = 1;
	return options->file ? tr_spec_load(options->file, &options->spec, out, err)
			     : tr_spec_create(&options->spec, out, err);
}
