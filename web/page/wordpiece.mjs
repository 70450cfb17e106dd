// BERT's tokenizer without cases: words are cut into the longest pieces that the vocabulary has (Devlin et al., 2018).

const PUNCTUATION = /[\p{P}$+<=>^`|~]/u;
// Those that BERT sets apart: no radicals, no kana, none of later releases of Unicode.
const IDEOGRAPH = /[\u3400-\u4DBF\u4E00-\u9FFF\uF900-\uFAFF\u{20000}-\u{2A6DF}\u{2A700}-\u{2B73F}\u{2B740}-\u{2B81F}\u{2B920}-\u{2CEAF}\u{2F800}-\u{2FA1F}]/u;
const LONGEST = 100; // letters of a word; longer ones are unknown

export class WordPiece {
  // text: the pieces, one a line, in the order of their numbers.
  constructor(text) {
    this.numbers = new Map(text.split("\n").map((piece, number) => [piece, number]));
  }

  // The numbers of a text, with those of its beginning and end; at most `most` of them.
  encode(text, most) {
    const found = this.words(text).flatMap((word) => this.pieces(word));
    const [begin, end] = ["[CLS]", "[SEP]"].map((name) => this.numbers.get(name));
    return [begin, ...found.slice(0, most - 2), end];
  }

  words(text) {
    const plain = text.replace(/(?![\t\n\r])[\p{Cc}\p{Cf}\p{Co}\uFFFD]/gu, "");
    // Each sign by itself: a sigma at the end of a word is one like all others.
    const bare = [...plain.normalize("NFD").replace(/\p{Mn}/gu, "")].map((sign) => sign.toLowerCase()).join("");
    const apart = [...bare].map((sign) => (PUNCTUATION.test(sign) || IDEOGRAPH.test(sign) ? ` ${sign} ` : sign));
    return apart.join("").split(/\s+/).filter(Boolean);
  }

  pieces(word) {
    const letters = [...word];
    const unknown = [this.numbers.get("[UNK]")];
    if (letters.length > LONGEST) return unknown;
    const found = [];
    for (let begin = 0; begin < letters.length; ) {
      let end = letters.length;
      let number;
      for (; end > begin; end--) {
        number = this.numbers.get((begin ? "##" : "") + letters.slice(begin, end).join(""));
        if (number !== undefined) break;
      }
      if (end === begin) return unknown;
      found.push(number);
      begin = end;
    }
    return found;
  }
}
