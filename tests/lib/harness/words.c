// SPDX-License-Identifier: MIT
/* Words: arguments; see words.h. */
#include <stdlib.h>
#include <string.h>

#include "harness/words.h"

/**
 * words_or_environment() - the arguments of the command line, or else those of KXFER_FUZZ_ARGUMENTS
 * @argc: argument of main()
 * @argv: in and out; words in the environment are separated by blanks
 *
 * Return: number of arguments, including the name of the program.
 */
int words_or_environment(int argc, char ***argv)
{
	static char *words[WORDS_MAX + 1];
	char *text = getenv("KXFER_FUZZ_ARGUMENTS"), *save, *word;
	int nr = 1;

	if (argc > 1 || !text)
		return argc;
	words[0] = (*argv)[0];
	for (word = strtok_r(text, " ", &save); word && nr < WORDS_MAX;
	     word = strtok_r(NULL, " ", &save))
		words[nr++] = word;
	*argv = words;
	return nr;
}
