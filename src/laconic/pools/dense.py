def transpose_product(X, R, threads):
    from laconic.threads import row_blocks

    return sum((X[s].T @ R[s]).astype(float) for s in row_blocks(len(X), 4096))
