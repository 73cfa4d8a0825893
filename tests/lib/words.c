// SPDX-License-Identifier: MIT
/* Words: arguments; see words.h. */
#include <stdlib.h>
#include <string.h>

#include "words.h"

/**
 * words_or_environment() - arguments as given, or else those of KXFER_FUZZ_ARGUMENTS
 * @argc: of main()
 * @argv: in and out; words in the environment are separated by blanks
 *
 * Return: how many, the name of the program included.
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
