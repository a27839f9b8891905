#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The main job of 'make run': what a first look at holdoff should show, without privileges.
set -euo pipefail
holdoff=$1

echo "+ holdoff lab run ixgbe-txring"
"$holdoff" lab run ixgbe-txring
echo
echo "+ holdoff gen mem:demo --recv mem:demo --duration 2s"
"$holdoff" gen mem:demo --recv mem:demo --duration 2s
