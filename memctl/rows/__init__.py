"""The life of stored rows: what may happen to one, and what becomes of those that refer to it.

Everything outside the store that changes a table does it through this package.  Which columns refer
to which rows is declared in ``memctl.schema``; nothing here knows files, models or questions.
"""
