def patch_multiprocessing(): pass
def unpatch_multiprocessing(): pass
