# Safeguards of predicate locks by leaf. Sourced by test/mutations.

mutate leaf_marked_behind_read test_predicate leaf_read \
	's/\tif \(scan->leaf_hook != NULL\)\n\t\tleaves_mark\(scan, &pointer, 1\);\n[^;]*;\n\treturn (leaf_cache_read\(.*?\));/\tTreeStatus status = $1;\n\n\tleaves_mark(scan, &pointer, 1);\n\treturn status;/'
mutate leaves_ahead_not_marked test_predicate scan.c:ahead_read \
	's/\tleaves_mark\(scan, ahead->pointers, ahead->count\);\n//'
mutate splits_not_waited_for test_predicate leaves_mark \
	's/if \(!splits_end\(scan->tree\)\)/if (false)/'
mutate split_not_told test_predicate split_leaf \
	's/\tsplit_announce\(tree, pointer, split\);\n/\tstate_split_begins(tree->state);\n/'
mutate split_told_behind test_predicate split_leaf \
	's/\tsplit_announce\(tree, pointer, split\);\n(\tkey = .*?;\n\tstatus = split_write.*?;\n)/$1\tsplit_announce(tree, pointer, split);\n/'
mutate root_split_told_by_half test_predicate split_announce \
	's/if \(split->root \&\& tree/if (false \&\& tree/'
mutate inserted_half_not_told test_predicate insert_split_write \
	's/tree->inserted = cells->extra < split->cut \? split->left : split->right;//'
