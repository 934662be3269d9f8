"""What a knowledge base offers to change single memories and names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memctl.knowledge_base.looking import Looking
from memctl.records import Memory

if TYPE_CHECKING:
    from memctl.graph.index import Node
    from memctl.memories.editing import Edit, Editor, Statement


class Changing(Looking):
    """Changes single memories, and which names mean the same."""

    def add_memory(self, statement: Statement | str) -> Memory:
        """Remember one statement; the same one said twice is there once."""
        from memctl.memories.editing import Statement

        given = Statement(statement) if isinstance(statement, str) else statement
        return self._editor.add(given)

    def edit_memory(self, id_: str, edit: Edit | str) -> Memory:
        """Write a new version of a memory, or of its text; the old one stays in its history.

        Raises:
            NotFoundError: There is none of that id.
            UsageError: It is evidence, or it has a newer version already.
        """
        from memctl.memories.editing import Edit

        return self._editor.edit(id_, Edit(text=edit) if isinstance(edit, str) else edit)

    def delete_memory(self, id_: str) -> int:
        """Forget a memory, its versions and what rests on it; return how many memories are gone."""
        return self._editor.delete_memory(id_)

    def delete_document(self, id_: str) -> int:
        """Forget a document and its memories; return how many memories are gone."""
        return self._editor.delete_document(id_)

    @property
    def _editor(self) -> Editor:
        self._begin_change()
        return self._stages.editor()

    def merge_names(self, one: str, other: str) -> Node:
        """Say that two names mean the same, and return what they are together.

        Raises:
            NotFoundError: Nothing is called that.
            UsageError: They are one already.
        """
        from memctl.graph.deciding import merge

        self._begin_change()
        return merge(self.graph(), self.store.ledger.names, self.clock(), one, other)

    def unmerge_names(self, one: str, other: str) -> tuple[Node, Node]:
        """Say that two names do not mean the same, and return what each is.

        Raises:
            NotFoundError: Nothing is called that.
            UsageError: They are two already, or cannot be told apart.
        """
        from memctl.graph.deciding import unmerge

        self._begin_change()
        return unmerge(self.graph(), self.store.ledger.names, self.clock(), one, other)
