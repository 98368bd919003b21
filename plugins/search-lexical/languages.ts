// Listings in other languages than the index's own: detects the language of a text by its function words, and marks the
// forms of its words in the index. A listing in German is stemmed as German, and its lexemes end in `~de`: a German
// stem is never taken for an English word, and an English catalog holds no such lexeme. A query may be in any language
// of the catalog, so each of its words is read in all of them. A text without function words is taken to be in the
// index's own language. Pure.

/** Function words without diacritics. Function words that are also names or words of English count least. */
const smallWords = {
  english: `the of and to for with by from that any your at or an it is are be which what this into all every in on as
    no a how its their per`,
  german: `der die das und mit fur von zu den dem des ein eine einen einem einer ist sind im nach bei aus auf uber
    oder nicht ihre ihr sich wird werden als zum zur vom durch wie aller alle ich`,
  french: `le la les des du de et une un pour par sur dans avec ou vos votre en aux au chez vous est sont ce cette
    qui que plus pres mon ma mes tous toutes comment`,
  spanish: `el la los las de del en un una por para con su sus al que es se como mas cual hoy entre desde mi tu
    sobre todos todas`,
  portuguese: `os as de do da dos das em um uma por para com seu sua que no na nos nas ao ou voce como mais tem
    meu minha sobre`,
  italian: `il lo la gli le di del della dei delle in un una per con su nel nella nelle nei alla che sono tra si
    come ogni mio mia dal dalla`,
  dutch: `de het een en van voor met op te bij naar uit of zijn is uw je deze alle per mijn waar hoe`
} as const

type Language = keyof typeof smallWords

const tags: Readonly<Record<string, Language>> = {
  de: "german",
  fr: "french",
  es: "spanish",
  pt: "portuguese",
  it: "italian",
  nl: "dutch",
  en: "english"
}

const wordsOf = new Map(
  Object.entries(smallWords).map(([language, words]): [string, ReadonlySet<string>] => [
    language,
    new Set(words.split(/\s+/))
  ])
)
const tagOf = new Map(Object.entries(tags).map(([tag, language]): [string, string] => [language, tag]))

/** Different ones; a single one may be a name. */
const smallWordsMin = 2
/** Function words that are also English words: they count only together with others. */
const ambiguous: ReadonlySet<string> = new Set(
  "an as come den die do in is me met no of on per plus pour son van via war".split(" ")
)
/** Between the lexeme of another language and that language. */
export const languageMark = "~"

export interface Foreign {
  /** PostgreSQL's configuration that stems it. */
  readonly stems: string
  /** How its lexemes end. */
  readonly ending: string
  readonly smallWords: ReadonlySet<string>
}

const foreign = (language: Language, tag: string): Foreign => ({
  stems: language,
  ending: `${languageMark}${tag}`,
  smallWords: wordsOf.get(language)!
})

/** The language of words without their marks, if it differs from the index's; only for an index in a known language. */
export const foreignOf = (words: Iterable<string>, indexLanguage: string): Foreign | undefined => {
  const own = wordsOf.get(indexLanguage)
  if (own === undefined) return undefined
  const different = [...new Set(words)]
  const heldOf = (small: ReadonlySet<string>) => different.filter((word) => small.has(word))
  let best: { readonly language: string; readonly count: number } = {
    language: indexLanguage,
    count: Math.max(heldOf(own).length, smallWordsMin - 1)
  }
  for (const [language, small] of wordsOf) {
    const held = heldOf(small)
    if (language === indexLanguage || held.length <= best.count || held.every((word) => ambiguous.has(word))) continue
    best = { language, count: held.length }
  }
  return best.language === indexLanguage ? undefined : foreign(best.language as Language, tagOf.get(best.language)!)
}

/** The languages of listings other than the index's own, by the tags in its state. */
export const foreignIn = (spoken: string): ReadonlyArray<Foreign> =>
  spoken.split(",").flatMap((tag) => (tags[tag] === undefined ? [] : [foreign(tags[tag], tag)]))

/** Whether a word is a function word in any of these languages, or a single Latin letter. */
export const isSmall = (word: string, spoken: ReadonlyArray<Foreign>): boolean =>
  spoken.some(({ smallWords }) => smallWords.has(word) || /^\p{Script=Latin}$/u.test(word))

export const withoutMark = (lexeme: string): string => {
  const at = lexeme.indexOf(languageMark)
  return at === -1 ? lexeme : lexeme.slice(0, at)
}
