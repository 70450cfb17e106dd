// BERT's tokenizer without cases: words are cut into the longest pieces that the vocabulary has (Devlin et al., 2018).

const PUNCTUATION = /[\p{P}$+<=>^`|~]/u;
const IDEOGRAPH = /\p{Script=Han}/u;
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
    const plain = text.replace(/[\p{Cc}\p{Cf}\uFFFD]/gu, (sign) => (/\s/.test(sign) ? " " : ""));
    const bare = plain.toLowerCase().normalize("NFD").replace(/\p{Mn}/gu, "");
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
