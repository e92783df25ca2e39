"""Tests that look at many cases: `make test` runs a part of them, and `make test-long` the rest.

A case is drawn by the name of the test, so it is always the same, and the cases that are drawn meet
most values of every parameter. At least one case of each test is drawn.
Tests that are long as a whole have the marker ``long`` where they stand.
"""

# ruff: noqa: E501 (names of tests are long)

import zlib

import pytest

# Of so many cases of a test, one runs by default.
ONE_OF = {
    "beyond/test_dask_cluster.py::test_a_path_counts_each_exchange_once": 2,
    "beyond/test_dask_cluster.py::test_an_interrupted_fit_keeps_what_it_learned_and_goes_on": 3,
    "beyond/test_dask_cluster.py::test_the_number_of_workers_changes_no_bit": 2,
    "beyond/test_dask_fit.py::test_labels_of_nullable_types_are_those_of_memory": 3,
    "beyond/test_workers_that_die.py::test_a_worker_that_is_killed_changes_no_bit": 3,
    "boost/test_checkpoint.py::test_a_killed_fit_resumes_to_the_identical_model": 2,
    "boost/test_checkpoint.py::test_in_whichever_round_it_ends_it_resumes_identically": 2,
    "boost/test_costs.py::test_an_atom_adds_what_the_model_with_it_has_more": 3,
    "boost/test_search_subset.py::test_a_fit_that_is_killed_after_every_round_ends_to_the_bit": 4,
    "cli/test_cli_chunks.py::test_chunks_give_the_answers_of_one_memory": 3,
    "cli/test_cli_chunks.py::test_times_are_spelled_the_same_in_every_chunk": 3,
    "cli/test_cli_files.py::test_standard_output_may_be_full": 2,
    "compact/test_compact.py::test_scikit_learn_accepts_it": 3,
    "converters/test_models.py::test_stumps_decide_alike_right_at_their_thresholds": 3,
    "device/test_fits_on_devices.py::test_shareboost_finds_the_same_path": 2,
    "device/test_in_scikit_learn.py::test_with_dispatch": 2,
    "estimators/test_budgets.py::test_the_loop_chooses_as_a_naive_loop_does": 2,
    "estimators/test_budgets.py::test_totalqboost_keeps_every_cap": 2,
    "estimators/test_clump.py::test_scikit_learn_accepts_it": 2,
    "estimators/test_extremes.py::test_fits_are_the_same_in_other_units_or_say_why_not": 4,
    "estimators/test_holes.py::test_scikit_learn_conventions": 2,
    "estimators/test_independent.py::test_bits_do_not_depend_on_where_folds_run": 3,
    "estimators/test_repeated_rows.py::test_of_error_clumping": 3,
    "estimators/test_repeated_rows.py::test_of_hole_punching": 3,
    "estimators/test_repeated_rows.py::test_of_shareboost": 2,
    "estimators/test_selectors.py::test_cross_validated_elimination_keeps_the_truth": 3,
    "estimators/test_selectors.py::test_error_clumping_is_a_linear_model_for_selectors": 2,
    "estimators/test_selectors.py::test_recursive_elimination_finds_the_truth": 3,
    "estimators/test_selectors.py::test_sequential_selection_finds_the_truth": 3,
    "estimators/test_share.py::test_scikit_learn_accepts_it": 3,
    "estimators/test_totalq.py::test_scikit_learn_accepts_it": 4,
    "export/test_c.py::test_random_models_of_all_kinds_give_the_same_bits": 2,
    "export/test_footprint.py::test_distances_of_64_bits_keep_the_promise": 3,
    "export/test_footprint.py::test_models_within_a_budget_stay_within_it_on_the_chip": 3,
    "export/test_footprint.py::test_scores_are_never_wider_than_counted_even_with_extreme_constants": 3,
    "export/test_footprint.py::test_the_linked_program_is_never_larger_than_promised": 3,
    "export/test_footprint.py::test_tiny_models_and_many_classes_keep_the_promise": 4,
    "export/test_windows.py::test_patches_give_the_same_bits_in_every_form": 2,
    "holes/test_routed.py::test_answers_are_those_of_the_models_by_hand": 4,
    "model/test_integer_file.py::test_whole_numbers_of_any_size_are_refused_or_keep_to_their_bounds": 3,
    "model/test_integers.py::test_scores_are_those_of_loops_and_keep_to_the_proven_bounds": 2,
    "model/test_quantise.py::test_16_bits_are_close_to_the_scores": 2,
    "numeric/test_skinny.py::test_compact_storage": 3,
    "numeric/test_skinny.py::test_kernel_is_the_product": 3,
    "pools/test_patches.py::test_sums_are_those_of_the_explicit_matrix": 2,
    "pools/test_stumps_parts.py::test_a_feature_too_long_to_list": 2,
    "report/test_page.py::test_nothing_is_cut_or_too_wide": 4,
    "rows/test_compiled_blocks.py::test_compiled_and_other_blocks_give_the_same_path": 4,
    "rows/test_far.py::test_every_pool_gives_the_path_of_near_shards_and_survives_losses": 2,
    "rows/test_far.py::test_every_rule_and_loss": 3,
    "rows/test_far_hessian.py::test_a_fit_with_estimates_goes_on_with_the_same_bits": 3,
    "rows/test_shards.py::test_every_pool_rule_and_loss": 4,
    "rows/test_shards.py::test_threads_change_no_bit": 2,
    "rows/test_shards.py::test_totalq": 5,
    "rows/test_shards.py::test_weights_are_those_of_one_memory": 2,
    "subset/test_brute_force.py::test_up_to_sixteen_columns": 3,
    "subset/test_exact.py::test_a_tree_at_its_end_leaves_no_gap": 2,
    "test_fuzz.py::test_resealed_checkpoints": 2,
    "test_fuzz.py::test_resealed_integer_predictors": 4,
    "tune/test_kept_tuning.py::test_after_whichever_epoch_it_ends_it_resumes_identically": 2,
    "tune/test_tuned_patches.py::test_slopes_are_finite_differences": 2,
}  # fmt: skip


def mark_the_rest(items):
    """Mark the cases that are not drawn as ``long`` tests."""
    cases = {}
    for item in items:
        name, _, case = item.nodeid.removeprefix("tests/").partition("[")
        if name in ONE_OF:
            cases.setdefault(name, []).append((zlib.crc32(case.encode()), item))
    for name, drawn in cases.items():
        drawn.sort(key=lambda pair: pair[0])
        for _, item in drawn[-(-len(drawn) // ONE_OF[name]) :]:
            item.add_marker(pytest.mark.long)
