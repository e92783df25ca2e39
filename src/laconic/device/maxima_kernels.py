"""The Triton kernels of `laconic.device.patch_values`. They are imported at first use."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def masked_maxima(  # type: ignore[no-untyped-def]
    responses,
    masks,
    place,
    out,
    n_templates,
    n_masks,
    n_positions,
    n_images,
    line,
    TEMPLATES: tl.constexpr,
    MASKS: tl.constexpr,
    IMAGES: tl.constexpr,
):
    """Write max(0, max_p mask(p) · response(p)) for some templates, all masks and some images.

    ``responses`` is (n_templates, n_positions, n_images) and is read once. ``masks`` is
    (n_positions, n_masks), and ``place`` is (n_templates, n_masks). ``out`` is (columns, n_images),
    with ``line`` numbers from one column to the next.
    """
    images = tl.program_id(0) * IMAGES + tl.arange(0, IMAGES)
    templates = tl.program_id(1) * TEMPLATES + tl.arange(0, TEMPLATES)
    numbers = tl.arange(0, MASKS)
    is_image, is_template, is_mask = images < n_images, templates < n_templates, numbers < n_masks
    at = templates.to(tl.int64)[:, None] * n_positions * n_images + images[None, :]
    inside = is_template[:, None] & is_image[None, :]
    largest = tl.zeros((TEMPLATES, MASKS, IMAGES), dtype=tl.float32)
    for position in range(n_positions):
        response = tl.load(responses + at, mask=inside, other=0.0)
        weight = tl.load(masks + position * n_masks + numbers, mask=is_mask, other=0.0)
        largest = tl.maximum(largest, response[:, None, :] * weight[None, :, None])
        at += n_images
    own = is_template[:, None] & is_mask[None, :]
    column = tl.load(place + templates[:, None] * n_masks + numbers[None, :], mask=own, other=-1)
    where = column[:, :, None] * line + images[None, None, :]
    tl.store(out + where, largest, mask=(column >= 0)[:, :, None] & is_image[None, None, :])


@triton.jit
def maxima_of_one(  # type: ignore[no-untyped-def]
    pixels,
    template,
    mask,
    out,
    n_images,
    line,
    width,
    across,
    top,
    bottom,
    left,
    right,
    SIZE: tl.constexpr,
    IMAGES: tl.constexpr,
):
    """Write max(0, max_p mask(p) · response(p)) of one atom, for some images.

    ``pixels`` is (n_pixels, n_images), with ``line`` numbers from one pixel to the next, and
    ``width`` pixels in a line of an image. ``mask`` has
    ``across`` positions in a line. It is zero outside the positions from (top, left) to
    (bottom, right), excluded.
    """
    images = tl.program_id(0) * IMAGES + tl.arange(0, IMAGES)
    is_image = images < n_images
    largest = tl.zeros((IMAGES,), dtype=tl.float32)
    for y in range(top, bottom):
        for x in range(left, right):
            response = tl.zeros((IMAGES,), dtype=tl.float32)
            for dy in tl.static_range(SIZE):
                for dx in tl.static_range(SIZE):
                    pixel = ((y + dy) * width + x + dx).to(tl.int64)
                    value = tl.load(pixels + pixel * line + images, mask=is_image, other=0.0)
                    response += tl.load(template + dy * SIZE + dx) * value
            largest = tl.maximum(largest, tl.load(mask + y * across + x) * response)
    tl.store(out + images, largest, mask=is_image)
