# SPDX-License-Identifier: BSD-2-Clause
# Text to a C string, a literal a line.
s/\\/\\\\/g
s/"/\\"/g
s/^/"/
s/$/\\n"/
