// Words of the texts of a resource and of a query, before PostgreSQL stems them: identifiers are split (camelCase,
// snake_case, letters about digits, paths, hosts), compounds are kept in one piece too, scripts without blanks are cut
// into pairs of characters, a word counts a bounded number of times. Documents and queries use the same functions, so
// that both are split alike. All functions are pure and bounded.

/** Longest word that is indexed; anything longer is data, not language. */
const wordLengthMax = 40

export interface Words {
  readonly words: ReadonlyArray<string>
  /** Compounds in one piece: `e-mail` and `eMail` give `email`, `pdf2text` stays unchanged. */
  readonly joined: ReadonlyArray<string>
}

const hyphenated = /(?<![\p{L}\p{N}-])(\p{L}+)-(\p{L}+)(?![\p{L}\p{N}-])/gu
const camelCased = /(?<![\p{L}\p{N}])(\p{Lu}?\p{Ll}+)(\p{Lu}\p{Ll}+)(?![\p{L}\p{N}])/gu

/** Letters about digits, with two letters in a row on each side that has any: `pdf2text`, `mp3player`, `utf8`. */
const mixed = /(?<![\p{L}\p{N}])(?:\p{L}{2,}\p{N}+(?:\p{L}{2,})?|\p{N}+\p{L}{2,})(?![\p{L}\p{N}])/gu
/** A run of a script that is written without blanks, or, in Hangul, with endings that a word takes on. */
const unspacedScripts = ["Han", "Hiragana", "Katakana", "Hangul", "Thai", "Khmer", "Lao"]
const unspaced = new RegExp(`[${unspacedScripts.map((script) => `\\p{Script=${script}}`).join("")}]+`, "gu")

/** `天气预报` as `天气 气预 预报`. */
const inPairs = (run: string): string => {
  const characters = [...run]
  return characters.length <= 2
    ? ` ${run} `
    : ` ${characters
        .slice(1)
        .map((one, at) => `${characters[at]}${one}`)
        .join(" ")} `
}

const unmarked: Readonly<Record<string, string>> = { ß: "ss", æ: "ae", œ: "oe", ø: "o", ł: "l", đ: "d", ı: "i" }

const withoutMark = (letter: string): string => {
  const lower = letter.toLowerCase()
  return letter === lower ? unmarked[lower]! : unmarked[lower]!.toUpperCase()
}

/** Latin letters without the marks that people leave out: `pronóstico` as `pronostico`, `Straße` as `Strasse`. */
const withoutMarks = (text: string): string =>
  /[\u00c0-\u024f\u1e00-\u1eff]/.test(text)
    ? text
        .normalize("NFD")
        .replace(/(\p{Script=Latin})\p{M}+/gu, "$1")
        .normalize("NFC")
        .replace(/[ßæœøłđı]/gi, withoutMark)
    : text

/** A word has a letter or a digit; pure symbols, such as emoji, are not words. */
const keep = (word: string): boolean => word.length <= wordLengthMax && /[\p{L}\p{N}]/u.test(word)

/** Splits a text into lower-case words. Text that is too long is cut at `charactersMax`. */
export const wordsOf = (text: string, charactersMax = 8_192): Words => {
  // One character may stand for eighteen, such as a ligature of a phrase.
  const normal = withoutMarks(text.slice(0, charactersMax).normalize("NFKC").slice(0, charactersMax))
  const joined = [
    ...[...normal.matchAll(hyphenated), ...normal.matchAll(camelCased)].map(([, a, b]) => `${a}${b}`.toLowerCase()),
    ...[...normal.matchAll(mixed)].map(([word]) => word.toLowerCase())
  ]
  const words = normal
    .replace(unspaced, inPairs)
    .replace(mixed, (word) => word.replace(/\p{N}+/gu, " "))
    .replace(/(\p{Ll}|\p{N})(\p{Lu})/gu, "$1 $2")
    .replace(/(?<=\p{Lu})(?=\p{Lu}\p{Ll})/gu, " ")
    .toLowerCase()
    .replace(/['’]s?(?=[^\p{L}\p{N}]|$)/gu, "")
    .split(/[^\p{L}\p{N}\p{M}]+/u)
  return { words: words.filter(keep), joined: joined.filter(keep) }
}

/**
 * Words of several texts as one string, each word at most `timesMax` times and `wordsMax` in all: repeating gains
 * nothing.
 */
export const boundedText = (
  texts: Iterable<string>,
  bounds: { readonly timesMax: number; readonly wordsMax: number }
): string => {
  const times = new Map<string, number>()
  const kept: Array<string> = []
  for (const text of texts) {
    const { joined, words } = wordsOf(text)
    for (const word of [...words, ...joined]) {
      if (kept.length >= bounds.wordsMax) return kept.join(" ")
      const seen = times.get(word) ?? 0
      if (seen >= bounds.timesMax) continue
      times.set(word, seen + 1)
      kept.push(word)
    }
  }
  return kept.join(" ")
}

/** The naming words of a URL: host labels without the top level, and path segments without versions. */
export const urlNames = (url: string): ReadonlyArray<string> => {
  const [, host = "", path = ""] = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)([^?#]*)/i.exec(url) ?? []
  const labels = host.replace(/^.*@/, "").replace(/:\d+$/, "").split(".")
  const named = (labels.length > 1 && !/^\d+$/.test(labels.at(-1) ?? "") ? labels.slice(0, -1) : labels).filter(
    (label) => label !== "" && label !== "www"
  )
  return [
    ...named,
    ...path
      .split("/")
      .filter((segment) => segment !== "" && !/^v\d+$/.test(segment))
      .map(decodeSegment)
  ]
}

const decodeSegment = (segment: string): string => {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

/**
 * English words that frame a request and carry no topic. Only verbs and nouns of asking: a word that could name a
 * service stays out of the list. PostgreSQL's own stop words come on top.
 */
const framing = new Set(
  `able anything currently everything find get give gets gave getting going help helps keep let lets like look
  looking looks make makes making need needed needing needs please really see show shows somebody someone
  something take tell thing things try trying us use used uses using want wanted wants way ways would could
  best better good great nice reliable decent recommend recommended suggest suggested kindly thanks thank hello hi hey
  capable allow allows allowing enable enables letting return returns returned returning provide provides providing
  offer offers offering`.split(/\s+/)
)

/** Words of asking in other languages, without their marks; none of them is a word of English. */
const foreignFraming = new Set(
  `necesito necesitamos quiero queremos quisiera busco buscamos encuentra encontrar dame deme muestrame ayuda ayudame
  puedo puede pueda podria favor mejor mejores buen buena algun alguna algo hacer quien donde cuando
  ich brauche brauchen suche suchen mochte mochten bitte finde finden gib zeig zeige gibt kann konnte beste bester
  bestes gute guter gutes etwas wo wie was welche welcher
  je cherche cherchons voudrais veux besoin trouve trouver donne donner montre plait meilleur meilleure meilleurs peut
  pouvez quelque comment ou quel quelle
  preciso precisamos procuro quero gostaria encontre melhor melhores algum alguma fazer onde quando
  cerco vorrei voglio trovami trovare dammi migliore migliori qualcosa dove quando
  zoek zoeken nodig graag beste vind geef iets
  мне нам нужен нужна нужно нужны хочу хотим ищу ищем найди найти найдите дай дайте покажи покажите помоги помогите
  пожалуйста лучший лучшая лучшее лучшие хороший хорошая можно может который которая которое которые чтобы какой какая
  какое какие где как когда что это есть`.split(/\s+/)
)

/** English stop words, PostgreSQL's, for text that is read without the database. */
const smallEnglish = new Set(
  `i me my myself we our ours ourselves you your yours yourself he him his she her hers it its they them their theirs
  what which who whom this that these those am is are was were be been being have has had having do does did doing a
  an the and but if or because as until while of at by for with about against between into through during before after
  above below to from up down in out on off over under again further then once here there when where why how all any
  both each few more most other some such no nor not only own same so than too very s t can will just don should now
  d ll m re ve y cannot`.split(/\s+/)
)

/** Without marks; none of them is a word of English but a few of one letter or two. */
const smallSpanish = new Set(
  `el la las los de del en un una unos unas por para con sin su sus al que es se como mas cual cuales entre desde mi mis
  tu tus sobre todos todas y lo le les si esta este esto ese esa va hay tengo tiene muy ya cuanto cuanta`.split(/\s+/)
)

export const isSmallSpanish = (word: string): boolean => smallSpanish.has(word)

/** Russian stop words, for text that is read without the database. */
const smallRussian = new Set(
  `в во на и с со по о об от до за из у к не ли же бы его ее их мой моя мое мои мою моего моей свой этот эта эти то для
  при или но а я ты он она они мы вы меня так такой такая такое там тут ещё еще уже`.split(/\s+/)
)

export const isSmallEnglish = (word: string): boolean => smallEnglish.has(word)

/** Asking in Japanese, Chinese and Korean, which is written without blanks. */
const unspacedFraming = new RegExp(
  [
    "(?:を|が)?(?:教えて|探して|見つけて|調べて|知り|やって|お願い)(?:ください|下さい|いる|います|ほしい|欲しい|たい|ます|です|します)*(?:です)?",
    "(?:が|を)?(?:欲しい|ほしい|必要|したい|できる)(?:です|な|の)?",
    "(?:して)?(?:ください|下さい|くれる)",
    "(?:です|ます|でしょう)か?|とは|について|おすすめの?|のための?|ための?|一番|最高の?",
    "我想要?|我需要|请问?|帮我|找一?个?|查一?下|有没有|怎么样?|最好的?|可以|能够"
  ].join("|"),
  "gu"
)

/** A pair of characters about a particle or an ending: it is a word of no listing's topic. */
const isParticle = (word: string): boolean => word.length <= 2 && /\p{Script=Hiragana}/u.test(word)

const kanaRun = /\p{Script=Hiragana}+/gu
const isJapanese = /[\p{Script=Han}\p{Script=Katakana}ー々]$/u
const kanaNounMin = 3

/**
 * Pairs of the nouns in Hiragana of a query, which are no particles: between particles, or from the beginning to one or
 * from "の" to the end. Other runs are endings of words in Kanji.
 */
const kanaPairs = (query: string): ReadonlySet<string> =>
  new Set(
    [...query.normalize("NFKC").matchAll(kanaRun)].flatMap(({ 0: run, index }) => {
      const isAfter = isJapanese.test(query.normalize("NFKC").slice(0, index))
      if (isAfter && !/^[のにをがはでともへ]/.test(run)) return []
      const isClosed = /[のにをがはでともへ]$/.test(run)
      const noun = [...run].slice(isAfter ? 1 : 0, isClosed ? -1 : undefined)
      const isNoun = noun.length >= kanaNounMin && (isClosed || (isAfter && run.startsWith("の")))
      return isNoun ? noun.slice(1).map((one, at) => `${noun[at]}${one}`) : []
    })
  )

const currencyCodes = new Set(Intl.supportedValuesOf("currency"))
const currencyNames = new Intl.DisplayNames(["en"], { type: "currency" })
/** Codes that are not English words: a single one, or two side by side, can only be codes. */
const plainCodes = new Set(
  `AED ARS AUD BRL CHF CLP CNY COP CZK DKK EGP EUR GBP HKD HUF IDR ILS INR JPY KES KRW MXN MYR NGN NOK NZD PLN RUB
  SAR SEK SGD THB TWD USD VND ZAR`.split(/\s+/)
)
const currencySigns: Readonly<Record<string, string>> = { $: "USD", "€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR" }
/** Coins with a short name that is not a word. */
const coinNames: Readonly<Record<string, string>> = {
  BCH: "bitcoin",
  BNB: "binance",
  BTC: "bitcoin",
  DOGE: "dogecoin",
  ETH: "ethereum ether",
  LTC: "litecoin",
  TRX: "tron",
  USDC: "usd stablecoin",
  USDT: "tether stablecoin",
  XLM: "stellar lumens",
  XRP: "ripple"
}

/** A sign outside of an amount. */
const loneSign = /(?<![\d.,])\s*([$€£¥₹])\s*(?![\d.,])/gu
/** One against another, in any case of letters. */
const moneyPair =
  /(?<![\p{L}\p{N}])([a-z]{3,4})(?:\s+(?:to|in|into|vs|and|against)\s+|\s*[/→>-]\s*)([a-z]{3,4})\b(?!\p{L})/giu
/** Words next to a code that do not change its meaning. */
const aboutMoney = new Set(
  "convert converter conversion course currency exchange forex fx price rate rates today now to in".split(" ")
)

const isCode = (code: string): boolean => currencyCodes.has(code) || coinNames[code] !== undefined

/** The currency codes in a query: pairs of any, coins, and plain codes without other context. */
const moneyCodes = (query: string): ReadonlyArray<string> => {
  const text = query.replace(loneSign, (_, sign: string) => ` ${currencySigns[sign]!} `)
  const pairs = [...text.matchAll(moneyPair)].map(([, a = "", b = ""]) => [a.toUpperCase(), b.toUpperCase()])
  const codes = pairs.filter((pair) => pair.every(isCode)).flat()
  const words = (text.toUpperCase().match(/[\p{L}\p{N}]+/gu) ?? []).flatMap((word) => {
    const halves = [word.slice(0, 3), word.slice(3)]
    return word.length === 6 && halves.every((half) => plainCodes.has(half)) ? halves : [word]
  })
  const isPlain = words.every((word) => plainCodes.has(word) || aboutMoney.has(word.toLowerCase()) || /\d/.test(word))
  return [...codes, ...words.filter((word) => coinNames[word] !== undefined || (isPlain && plainCodes.has(word)))]
}

/** The English of currency codes in a query: their names, and their kind. */
export const currencyWords = (query: string): ReadonlyArray<string> => {
  const codes = [...new Set(moneyCodes(query))]
  if (codes.length === 0) return []
  const isCoin = codes.some((code) => coinNames[code] !== undefined)
  const names = codes.flatMap((code) => wordsOf(coinNames[code] ?? currencyNames.of(code) ?? "").words)
  return [...new Set([...names.filter((word) => word.length > 2), ...(isCoin ? ["crypto", "price"] : ["currency"])])]
}

/** "A list of companies" asks for companies. */
const amountOf = /\b(?:lists?|lots?|kinds?|sorts?|types?|pieces?|bunch|couple|copy|copies|examples?) of\b/giu

/** Small words that no neighbour of Spanish has. */
const plainSpanish = new Set("el los las del con sin mas cual cuanto cuanta y hay muy mis sus esta este".split(" "))

/** A Spanish function word is enough, if the only English ones are words of both languages. */
const isSpanish = (words: ReadonlyArray<string>): boolean =>
  words.some((word) => plainSpanish.has(word)) &&
  !words.some((word) => word.length > 2 && isSmallEnglish(word) && !isSmallSpanish(word))

/** A query's words without framing, in English; a query that is nothing but framing keeps its words. */
export const queryWords = (query: string, language: string): Words => {
  const isEnglish = language === "english"
  const bare = query.replace(unspacedFraming, " ")
  const { joined, words } = wordsOf(isEnglish ? bare.replace(amountOf, " ") : bare)
  const isForeign = isSpanish(words)
  const nouns = kanaPairs(bare)
  const isAsking = (word: string): boolean =>
    foreignFraming.has(word) ||
    smallRussian.has(word) ||
    (isParticle(word) && !nouns.has(word)) ||
    (isForeign && isSmallSpanish(word)) ||
    (isEnglish && framing.has(word))
  const discriminative = words.filter((word) => !isAsking(word))
  return {
    words: discriminative.length === 0 ? wordsOf(query).words : discriminative,
    joined: [...joined, ...currencyWords(query)]
  }
}

const cyrillic = /\p{Script=Cyrillic}/u

/**
 * The configuration that stems a text in an index of a language. In an English index, text with Cyrillic letters is
 * stemmed as Russian; PostgreSQL's configuration of that name stems words in Latin letters as English.
 */
export const stemmedAs = (text: string, language: string): string =>
  language === "english" && cyrillic.test(text) ? "russian" : language

/** Pieces of three letters of a word between blanks, as trigram indexes have them. */
export const gramsOf = (word: string): ReadonlyArray<string> => {
  const padded = [...`  ${word} `]
  return [...new Set(Array.from({ length: padded.length - 2 }, (_, at) => padded.slice(at, at + 3).join("")))]
}

/**
 * Letters to insert, remove, replace or swap with their neighbour to make one word of the other; more than `max` is
 * `max + 1`.
 */
export const editsBetween = (a: string, b: string, max: number): number => {
  if (Math.abs(a.length - b.length) > max) return max + 1
  let before: Array<number> = []
  let last = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      let edits = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + (same ? 0 : 1))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) edits = Math.min(edits, before[j - 2]! + 1)
      row.push(edits)
    }
    before = last
    last = row
  }
  return Math.min(last[b.length]!, max + 1)
}

/** Whether `typed` may be `meant` with slips: one, or two in a long word, and never in the first letter. */
export const isMistyped = (typed: string, meant: string): boolean =>
  typed[0] === meant[0] && editsBetween(typed, meant, 2) <= (Math.min(typed.length, meant.length) < 8 ? 1 : 2)
