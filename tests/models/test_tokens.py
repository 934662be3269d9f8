"""Tokens of texts for models whose tokenizer is not at hand."""

from __future__ import annotations

import pytest

from memctl.models.protocols import estimate_tokens

COUNTED = {
    "The lease of the house by the harbour starts on the first of June, and the rent is due on the "
    "third working day of every month.": 29,
    "Der Mietvertrag für das Haus am Hafen beginnt am ersten Juni, und die Miete ist am dritten "
    "Werktag jedes Monats fällig.": 33,
    "El contrato de alquiler de la casa junto al puerto comienza el primero de junio, y la renta "
    "se paga el tercer día hábil de cada mes.": 35,
    "Umowa najmu domu przy porcie zaczyna się pierwszego czerwca, a czynsz płaci się trzeciego "
    "dnia roboczego każdego miesiąca.": 37,
    "Договор аренды дома у гавани начинается первого июня, а плата вносится на третий рабочий "
    "день каждого месяца.": 35,
    "港口旁边那栋房子的租约从六月一日开始，租金应在每个月的第三个工作日支付。": 30,
    "港のそばの家の賃貸契約は六月一日から始まり、家賃は毎月三番目の営業日に支払います。": 39,
    "항구 옆 집의 임대차 계약은 유월 일일에 시작되며 집세는 매달 셋째 영업일에 내야 합니다.": 37,
    "Το συμβόλαιο για το σπίτι δίπλα στο λιμάνι αρχίζει την πρώτη Ιουνίου και το ενοίκιο "
    "πληρώνεται κάθε μήνα.": 58,
}  # fmt: skip
"""Sentences with the mean of the counts of cl100k, o200k, Qwen's, DeepSeek's and Mistral's."""


@pytest.mark.parametrize("text", COUNTED)
def test_the_estimate_is_within_a_quarter_of_what_tokenizers_count(text: str) -> None:
    assert estimate_tokens(text) == pytest.approx(COUNTED[text], rel=0.25)


def test_english_is_four_characters_a_token() -> None:
    assert [estimate_tokens(text) for text in ("", "a", "door", "doors")] == [0, 1, 1, 2]


def test_what_cannot_be_written_as_bytes_is_counted_too() -> None:
    assert estimate_tokens("\ud800" * 8) == 2
