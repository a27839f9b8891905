# SPDX-License-Identifier: BSD-2-Clause
# Bash completion for holdoff. Commands, options and kinds of ports are asked of the program
# itself, so this file knows none of them.

_holdoff() {
	local cur=${COMP_WORDS[COMP_CWORD]} program=${COMP_WORDS[0]} command=${COMP_WORDS[1]}
	# "mem:a" is one word for holdoff, whatever COMP_WORDBREAKS says.
	if declare -F _get_comp_words_by_ref >/dev/null; then
		_get_comp_words_by_ref -n := cur
	fi

	if [ "$COMP_CWORD" -eq 1 ]; then
		COMPREPLY=($(compgen -W "$("$program" --help 2>/dev/null |
			sed -n 's/^  \([a-z]\+\) .*/\1/p')" -- "$cur"))
		return
	fi
	# A command of commands: options are asked of the one chosen.
	local sub= subs=
	case $command in
	fib) subs="load lookup bench" sub=${COMP_WORDS[2]} ;;
	lab) subs="list show run exam" && [ "${COMP_WORDS[2]}" = exam ] && sub=exam ;;
	esac
	if [ -n "$subs" ] && [ "$COMP_CWORD" -eq 2 ] && [[ $cur != -* ]]; then
		COMPREPLY=($(compgen -W "$subs" -- "$cur"))
		return
	fi
	case $cur in
	-*)
		COMPREPLY=($(compgen -W "$("$program" "$command" $sub --help 2>/dev/null |
			sed -n 's/^ *\(-[a-zA-Z?], \)\?\(--[a-z].*\)/\2/p' | sed 's/   .*//' |
			grep -o -- '--[a-z][a-z0-9-]*=\?' | sort -u)" -- "$cur"))
		[[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace
		;;
	*)
		# Plain names of interfaces, for commands that look at the kernel's own drivers.
		if [[ $command = @(stat|explain|sweep|tune|restore) && $cur != *:* ]]; then
			COMPREPLY=($(compgen -W "$(ls /sys/class/net 2>/dev/null)" -- "$cur"))
			return
		fi
		;;&
	xdp:* | packet:*)
		local kind=${cur%%:*}
		COMPREPLY=($(compgen -P "$kind:" -W "$(ls /sys/class/net 2>/dev/null)" -- "${cur#*:}"))
		;;
	pcap:*)
		COMPREPLY=($(compgen -P pcap: -f -- "${cur#*:}"))
		;;
	*)
		if [ -n "$subs" ]; then
			COMPREPLY=($(compgen -f -- "$cur"))
			return
		fi
		COMPREPLY=($(compgen -W "$("$program" ports 2>/dev/null |
			sed -n 's/^\([a-z]\+:\).*/\1/p')" -- "$cur") $(compgen -f -- "$cur"))
		compopt -o nospace
		;;
	esac
	if declare -F __ltrim_colon_completions >/dev/null; then
		__ltrim_colon_completions "$cur"
	fi
}

complete -F _holdoff holdoff
