"""What breaks the prefix that prompts could share: found, told with its place and its price, and put right where that
cannot change what a prompt means. From the prompts alone; no server is asked.

`reading` makes requests of files, `likeness` says which earlier request each is like, `steps` goes from one difference
to the next by the rules in `orders`, `spacing`, `moving`, `passages` and `preamble`, `pair` says what each costs,
`arranging` rearranges the whole log, `finding` puts it all together, `tables` prints it, and `fixing` writes what was
put right.
"""
