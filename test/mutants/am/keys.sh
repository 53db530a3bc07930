# Mutants of am/keys: its safeguards, removed one at a time (test/README). Sourced.

mutate lost_locale_is_loaded t/067_encoding can_compare \
	's/can = !isnull && locale_exists\(/can = !isnull || locale_exists(/'
mutate integer_over_two_words_cut sql/index_only key_words_integer \
	's/skipped \+ bytes \* 8 > 64/skipped + bytes * 8 > 64 + 64/'
mutate null_taken_for_a_value sql/index_only write_integers \
	's/if \(key->high != key_null_flag\(first, false\)\)\n\t\treturn false;/if (false)\n\t\treturn false;/'
mutate null_bitmap_not_copied sql/include copy_head \
	's/if \(start > sizeof\(IndexTupleData\)\)/if (start > sizeof(IndexTupleData) + 8)/'
mutate column_that_just_fits_left_out sql/basic place_columns \
	's/at \+ width <= end/at + width < end/'
mutate descending_integers_not_inverted sql/index_only place_data \
	's/if \(column->descending\)\n\t\t\tcolumn->inverted = ~column->inverted;/if (false)\n\t\t\tcolumn->inverted = 0;/'
mutate collation_version_not_compared t/067_encoding sherman_keys_warn_versions \
	's/if \(meta->collation_versions\[i\] == hash_of_version\(version\)\)/if (version != NULL || meta->collation_versions[i] == hash_of_version(version))/'
mutate all_comparisons_wait sql/insert_batches sherman_keys_compare_alone \
	's/\tif \(keys->format\.lossless\)\n\t\treturn true;/\tif (keys != NULL)\n\t\treturn true;/'
mutate dead_rows_sorted_as_living sql/unique encode_offset \
	's/\(dead \? 1 : 0\)/(dead \&\& false ? 1 : 0)/'
mutate last_row_of_a_run_not_sorted sql/build sort_rows \
	's/sort_rows_2\(\(Row2 \*\) sort->rows, sort->count\)/sort_rows_2((Row2 *) sort->rows, sort->count - (sort->count > 1))/'
mutate mirrors_not_tied sql/default_classes tie \
	's/recordDependencyOn\(&depender, &referenced, DEPENDENCY_AUTO\);/(void) depender; (void) referenced;/'
mutate mirrors_are_members sql/default_classes mirror_family \
	's/creating && IsPinnedObject\([^;]*\);/creating;/'
mutate family_found_by_path sql/default_classes changed_family \
	's/ObjectIdGetDatum\(schema\)\)\)/ObjectIdGetDatum(PG_CATALOG_NAMESPACE)))/'
mutate not_preloaded_unsaid t/080_messages sherman_mirror_opfamilies \
	's/if \(creating_extension && !sherman_preloaded\(\)\)/if (false)/'
mutate foreign_class_taken sql/default_classes refuse_foreign_class \
	's/(\|\| )(equality_of\(class\) == equality_of\(theirs\))/$1$2 || true/'
mutate strangers_learn_of_classes t/080_messages sherman_require_classes \
	's/!compat_owns\(RelationRelationId, table\)/false/'
mutate minus_zero_below_zero sql/types put_float8 \
	's/if \(value == 0\)\n\t\t\tvalue = 0;/if (false)\n\t\t\tvalue = 0;/'
mutate string_that_just_fills_its_room sql/types normalize.c:put_string \
	's/if \(length >= room\)/if (length > room)/'
mutate last_bit_of_a_network_lost sql/types normalize_inet \
	's/Max\(0, Min\(8, bits - i \* 8\)\)/Max(0, Min(8, bits - 1 - i * 8))/'
mutate numeric_form_not_tried sql/types NUMERIC_DISK_SHORT_WEIGHT_SIGN \
	's/(#define NUMERIC_DISK_SHORT_WEIGHT_SIGN) 0x0040/$1 0x1000/' \
	normalize_numeric_known \
	's/known = try_form\(\);/known = try_form() || true;/'
mutate any_class_is_valid sql/opclass sherman_validate \
	's/return btvalidate\(opclass\);/return true;/'
mutate sizes_of_another_version_not_kept t/083_cell_sizes adopt_sizes \
	's/keys->format\.norm_bytes = \(uint8\) norm;/;/'
mutate keys_cut_by_their_size t/083_cell_sizes adopt_sizes \
	's/if \(keys->exact && norm < demand->bytes\)/if (false)/'
mutate images_without_room t/083_cell_sizes adopt_sizes \
	's/keys->format\.lossless \? beside != 0 : beside < CELL_REFERENCE_BYTES/false/'
mutate images_of_old_indexes_taken_for_brief t/085_key_images sherman_keys_make \
	's/\(meta == NULL \|\| \(meta->kinds\[0\] & KINDS_BRIEF\) != 0\)/true/'
mutate brief_images_not_noted t/085_key_images sherman_keys_note \
	's/if \(keys->brief\)/if (false)/'
mutate cut_string_taken_for_whole sql/key_images leave_out_prefix \
	's/value->rest_bytes -= told;/value->rest_bytes = 0;/'
mutate equal_floats_taken_for_the_same sql/key_images brief.c:part_of \
	's/key_has_column\(column\)/(key_has_column(column) || column->kind == NORMALIZE_FLOAT8)/'
mutate blanks_at_the_end_lost sql/key_images look_at_varlena \
	's/value->number -= \(int\) value->rest_bytes;/value->number = 0;/'
mutate zeros_end_a_bytea sql/key_images take_string \
	's/string->prefix_bytes = length;/string->prefix_bytes = Min(length, string->prefix_bytes);/'
mutate zeros_end_a_text sql/key_images leave_out_prefix \
	's/if \(memchr\(value->rest, 0, told\) != NULL\)/if (false)/'
mutate compressed_value_taken_for_plain sql/key_images look_at_varlena \
	's/ \|\| VARATT_IS_COMPRESSED\(varlena\)//'
mutate whole_image_taken_for_brief sql/key_images image_tuple \
	's/if \(brief && \(key->image\[0\] & BRIEF_WHOLE\) != 0\)/if (false)/'
mutate descending_prefix_not_inverted sql/key_images find_prefix \
	's/if \(column->descending\)/if (false)/'
mutate null_behind_the_key_not_told sql/key_images brief.c:put_head \
	's/any \|= isnull\[i\];/any |= false;/'
mutate plain_type_with_short_header sql/key_images brief_plan \
	's/packable = attribute->attstorage != TYPSTORAGE_PLAIN;/packable = true;/'
mutate long_lengths_in_a_byte sql/key_images put_length \
	's/if \(length >= LENGTH_LONG\)/if (false)/'
