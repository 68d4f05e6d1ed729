from stand_in import stand_in  # type: ignore[import-not-found]  # SGLang runs with the folder above on its path

stand_in(__name__)
