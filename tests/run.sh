#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs every test that this machine can run, and ends with "N passed, N failed, N skipped".
#
#   tests/run.sh            all
#   tests/run.sh unit       unit tests, with warnings as errors
#   tests/run.sh asan       unit tests under AddressSanitizer and UBSan
#   tests/run.sh tsan       threaded unit tests under ThreadSanitizer
#   tests/run.sh net        tests/net: real programs, namespaces
#   tests/run.sh guest      tests/guest: the kernel's NIC drivers in a QEMU guest
#
# HOLDOFF_LONG=1: with 10 million frames a case where it is 2 million else, and a debug build whose
# runs in the lab are compared with those of the others; some ten minutes more.
#
# A test passes with exit status 0, is skipped with 77 (its last line says why), fails with any
# other. The output of one that failed is shown.
set -u
cd "$(dirname "$0")/.." || exit 1
top=$PWD
# What the tests read is in English, as wide as it is without a terminal; some of what they call is for
# administrators.
export LC_ALL=C.UTF-8 PATH=$PATH:/usr/sbin:/sbin HOME=${HOME:-/tmp}
unset COLUMNS LINES NO_COLOR
groups=${*:-unit asan tsan net guest}
passed=0 failed=0 skipped=0
if [ "${HOLDOFF_LONG:-0}" != 1 ]; then
	export FRAMES=${FRAMES:-2000000} HOLDOFF_FRAMES=${HOLDOFF_FRAMES:-2000000}
	export LAB_BUILDS=${LAB_BUILDS:-0} HOLDOFF_BARE=${HOLDOFF_BARE:-0}
fi
log=$(mktemp) || exit 1
# What runs beside others ends with us; a test that is at work ends first.
trap 'kill $(jobs -p) 2>/dev/null; rm -f "$log"' EXIT
trap 'exit 1' INT TERM HUP

# report NAME SECONDS-TAKEN STATUS LIMIT: of the test whose output is in $log.
report() {
	case $3 in
	0) passed=$((passed + 1)); echo "PASS  $1 ($2 s)" ;;
	77) skipped=$((skipped + 1)); echo "SKIP  $1: $(tail -n 1 "$log")" ;;
	*)
		failed=$((failed + 1))
		[ "$3" = 124 ] && echo "(no end within $4 s)" >>"$log"
		echo "FAIL  $1 (exit status $3)"
		tail -n 60 "$log" | sed 's/^/      | /'
		;;
	esac
}

# run NAME SECONDS COMMAND...
run() {
	local name=$1 limit=$2 start=$SECONDS
	shift 2
	timeout -k 10 "$limit" "$@" >"$log" 2>&1 </dev/null
	report "$name" $((SECONDS - start)) $? "$limit"
}

# build DIR TARGETS OPTIONS...: a failed build is a failed test. TARGETS "": everything.
build() {
	local dir=$1 targets=$2
	shift 2
	if [ ! -e "$dir/build.ninja" ]; then
		# Less about variables: it halves what is to be linked.
		meson setup "$dir" -Dc_args=-g1 "$@" >"$log" 2>&1 || { tail -n 20 "$log"; return 1; }
	fi
	# shellcheck disable=SC2086
	ninja -C "$dir" $targets >"$log" 2>&1 || {
		grep -A 8 -E 'error|FAILED' "$log" | head -n 60
		return 1
	}
}

# What the threads of a process share is in these.
tsan_tests='runtime port_mem port_memif engine fib_readers'

# All unit tests, for build.
unit_targets() {
	sed -n "/^unit_tests = \[/,/^\]/s/^  '\(.*\)',.*/tests\/unit\/test_\1/p" tests/unit/meson.build
}

# The sanitizers find no place for what they keep about memory in some of the layouts that newer kernels
# choose by chance: no chance, where that may be asked for.
same_layout=()
setarch "$(uname -m)" -R true 2>/dev/null && same_layout=(setarch "$(uname -m)" -R)

# unit_tests DIR LABEL: as many at once as there are CPUs, since they share nothing; those that
# take longest first.
unit_tests() {
	local dir=$1 label=$2 exe i n=0 limit=600 results
	local -a names=() layout=()
	[ "$label" = unit ] || layout=(${same_layout[@]+"${same_layout[@]}"})
	results=$(mktemp -d) || exit 1
	for exe in "$dir"/tests/unit/test_{lab_property,lab_runs,fib,port_memif} "$dir"/tests/unit/test_*; do
		[ -x "$exe" ] && [ -f "$exe" ] || continue
		case " ${names[*]} " in *" ${exe##*/test_} "*) continue ;; esac
		names+=("${exe##*/test_}")
		(
			start=$SECONDS
			timeout -k 10 "$limit" ${layout[@]+"${layout[@]}"} "$exe" >"$results/$n" 2>&1 </dev/null
			echo "$((SECONDS - start)) $?" >"$results/$n.status"
		) &
		n=$((n + 1))
		[ "$(jobs -pr | wc -l)" -lt "$(nproc)" ] || wait -n
	done
	wait
	for ((i = 0; i < n; i++)); do
		cp "$results/$i" "$log"
		# shellcheck disable=SC2046
		report "$label/${names[i]}" $(cat "$results/$i.status") "$limit"
	done
	rm -rf "$results"
}

# Of tests/net, those that compute and wait for nobody: they run one after the other beside others, which
# leave CPUs idle while they wait; at a low priority, so that these hardly notice.
beside="install forward_conformance decode_frames lab_exam report_page documented sweep forward_six_vlans lab_txring"
# Those that want all CPUs, or judge less when they do not have them: they come last, and nothing runs beside
# them.
alone="forward_kernel_tcp forward_shortcut gen_recv_mem memif_testpmd packet_veth rates stat tap tune_live veth_commands veth_frames veth_long xdp"

# in_list NAME LIST
in_list() { case " $2 " in *" $1 "*) ;; *) return 1 ;; esac; }

# start_beside FOLDER: in the background; what became of them is in the folder.
start_beside() {
	local name script start
	(
		for name in $beside; do
			for script in "$top/tests/net/$name".*; do
				[ -x "$script" ] || continue
				start=$SECONDS
				timeout -k 10 1200 nice -n 10 "$script" >"$1/$name" 2>&1 </dev/null
				echo "$((SECONDS - start)) $?" >"$1/$name.status"
			done
		done
	) &
}

# end_beside FOLDER: waits for them and reports.
end_beside() {
	local name
	wait
	for name in $beside; do
		[ -e "$1/$name.status" ] || { echo "there is no such test" >"$1/$name" && echo 0 1 >"$1/$name.status"; }
		cp "$1/$name" "$log"
		# shellcheck disable=SC2046
		report "net/$name" $(cat "$1/$name.status") 1200
	done
	rm -rf "$1"
}

# run_scripts GROUP SECONDS COMMAND: those of the folder, but for which COMMAND is true of $name.
run_scripts() {
	local script name
	for script in "tests/$1"/*.sh "tests/$1"/*.py; do
		name=${script##*/} name=${name%.*}
		[ ! -x "$script" ] || eval "$3" || run "$1/$name" "$2" "$top/$script"
	done
}

build_failed() {
	failed=$((failed + 1))
	echo "FAIL  $1/build"
}

for group in $groups; do
	case $group in
	unit)
		build build-test '' -Dwerror=true && unit_tests build-test unit || build_failed unit
		;;
	asan)
		export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1
		export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
		# Each operation is some five times as slow here.
		export HOLDOFF_FIB_OPS=${HOLDOFF_FIB_OPS:-5000}
		build build-asan "$(unit_targets)" -Db_sanitize=address,undefined -Db_lundef=false &&
			unit_tests build-asan asan || build_failed asan
		;;
	tsan)
		build build-tsan "$(printf 'tests/unit/test_%s ' $tsan_tests)" -Db_sanitize=thread -Db_lundef=false &&
			TSAN_OPTIONS=halt_on_error=1 unit_tests build-tsan tsan ||
			build_failed tsan
		;;
	net | guest)
		if build build-test '' -Dwerror=true; then
			export HOLDOFF=$top/build-test/holdoff
			if [ "$group" = net ]; then
				others=$(mktemp -d) || exit 1
				start_beside "$others"
				run_scripts net 600 'in_list "$name" "$beside $alone"'
				end_beside "$others"
				run_scripts net 600 '! in_list "$name" "$alone"'
			else
				# A guest is some twenty times as slow.
				run_scripts guest 900 false
			fi
		else
			build_failed "$group"
		fi
		;;
	*)
		echo "tests/run.sh: no group '$group'; unit, asan, tsan, net and guest exist" >&2
		exit 1
		;;
	esac
done

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
