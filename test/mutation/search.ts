// Removes each guard of search, one at a time: what earns a rank, what spam gains, which words are searched beside
// those of the query, and what a reranker may cost.
import type { Mutation } from "./Mutation.ts"

const environment = { TOLLKEEPER_TEST_DATABASES: "pglite" }

const inFile =
  (file: string, tests: string) =>
  (name: string, from: string, to: string): Mutation => ({
    name,
    changes: [{ file: `plugins/${file}`, from, to }],
    catcher: ["node_modules/vitest/vitest.mjs", "run", "--config", "test/vitest.config.ts", `test/plugins/${tests}`],
    environment
  })

const weighed = inFile("catalog/search/rank/signals.ts", "catalog/search/ranking.test.ts")
const fusedBy = inFile("catalog/search/rank/fuse.ts", "catalog/search/ranking.test.ts")
const rerankedBy = inFile("catalog/search/rank/rerank.ts", "catalog/search/rank/rerank.test.ts")
const rerankers = inFile("catalog/search/rank/Reranker.ts", "catalog/search/rank/rerank.test.ts")
const understood = inFile("catalog/search/readIntent.ts", "catalog/search/intent.test.ts")
const spreadText = inFile("catalog/search/rank/spreadSellers.ts", "catalog/search/ranking.test.ts")
const spelling = inFile("search-semantic/embedded/spelling.ts", "search-semantic/words.test.ts")
const texts = inFile("catalog/search/rank/textSketch.ts", "catalog/search/ranking.test.ts")
const ranked = inFile("search-lexical/rankDocuments.ts", "search-lexical/ranking.daily.test.ts")
const planned = inFile("search-lexical/planCandidates.ts", "search-lexical/ranking.daily.test.ts")
const counted = inFile("search-lexical/refreshStatistics.ts", "search-lexical/ranking.daily.test.ts")
const readBy = inFile("search-lexical/QueryReader.ts", "search-lexical/ranking.daily.test.ts")
const known = inFile("search-lexical/Vocabulary.ts", "search-lexical/ranking.daily.test.ts")
const spoken = inFile("search-lexical/languages.ts", "search-lexical/ranking.daily.test.ts")
const written = inFile("search-lexical/words.ts", "search-lexical/ranking.daily.test.ts")
const bounded = inFile("search-lexical/Vocabulary.ts", "search-lexical/bounds.daily.test.ts")
const rare = inFile("catalog/search/rank/RareFilters.ts", "catalog/search/rareFilters.daily.test.ts")
const provides = inFile("catalog/search/rank/Ranker.ts", "catalog/search/partial.daily.test.ts")
const numbered = inFile("search-lexical/QueryReader.ts", "catalog/search/missed.daily.test.ts")
const kept = inFile("catalog/search/rank/fitCache.ts", "catalog/search/rank/fitCache.test.ts")
const again = inFile("catalog/search/rank/rankingCache.ts", "catalog/search/rank/rankingCache.test.ts")
const fedBack = inFile("search-lexical/Feedback.ts", "search-lexical/ranking.daily.test.ts")
const split = inFile("search-lexical/words.ts", "search-lexical/words.test.ts")
const evident = inFile("search-lexical/evidence.ts", "search-lexical/evidence.test.ts")
const usual = inFile("search-lexical/commonWords.ts", "search-lexical/evidence.test.ts")
const asking = inFile("search-lexical/words.ts", "search-lexical/evidence.test.ts")
const related = inFile("search-lexical/relations.ts", "search-lexical/relations.test.ts")
const translated = inFile("search-lexical/translations.ts", "search-lexical/translations.test.ts")
const translatedSplit = inFile("search-lexical/words.ts", "search-lexical/translations.test.ts")
const embedded = inFile("search-semantic/provider/embedQueued.ts", "search-semantic/embedQueued.test.ts")
const leftOut = {
  catcher: [
    "node_modules/vitest/vitest.mjs",
    "run",
    "--config",
    "test/vitest.config.ts",
    "test/relevance/leaveOneSetOut.test.ts"
  ],
  environment
}
const quantized = inFile(
  "search-semantic/index/QuantizedVectors.ts",
  "search-semantic/index/QuantizedVectors.daily.test.ts"
)
const coded = inFile("search-semantic/index/SignCodes.ts", "search-semantic/index/SignCodes.test.ts")
const eitherWay = inFile("search-semantic/index/indexByMethod.ts", "search-semantic/index/indexByMethod.daily.test.ts")
const tabled = inFile("search-semantic/embedded/WordTable.ts", "search-semantic/words.test.ts")

const vectors = "test/plugins/search-semantic/queryVectors.test.ts"
const provided = {
  catcher: ["node_modules/vitest/vitest.mjs", "run", "--config", "test/vitest.config.ts", vectors],
  environment
}

export const mutations: ReadonlyArray<Mutation> = [
  embedded(
    "a vector of a resource that was lost is another's",
    "jobs.filter(({ id }) => now.get(id) === known.get(id))",
    "jobs"
  ),
  weighed("what is merely claimed is worth as much", "weights.unproven_share * wished", "wished"),
  provides("a mode without a provider is whole", "isModeAsked ? promised[mode]", "(false as boolean) ? promised[mode]"),
  provides("the default mode is partial", "isModeAsked ? promised[mode]", "isModeAsked || mode ? promised[mode]"),
  provides(
    "means of words are a model",
    'semantic: ["semantic"], hybrid: ["lexical", "semantic"]',
    "semantic: [], hybrid: []"
  ),
  rerankedBy(
    "every reranker is asked in every way",
    "const asked = requests[provider](model, query, texts)",
    "const asked = requests.http(model, query, texts)"
  ),
  rerankers("a failing reranker is asked by every search", "circuit.run(order)", "order"),
  rerankers("concurrent searches for the reranker are unbounded", "inFlight >= concurrentMax", "false"),
  rerankers("twins ask twice", "if (running !== undefined) return yield* Deferred.await(running)", ""),
  fusedBy("equals have the ranks of their order", "hits[index - 1]!.score !== score", "true"),
  fusedBy("a branch whose best hit is weak has found something", "best < bestMin ? Infinity", "best < 0 ? Infinity"),
  fusedBy(
    "the means of words count as much where the words are sure",
    "Math.min(1, (surenessShare * means) / words)",
    "1"
  ),
  fusedBy(
    "what is as likely as chance makes one is found",
    "if (fitness === undefined || evidence === undefined)",
    "if (bestMin >= 0 || fitness === undefined || evidence === undefined)"
  ),
  fusedBy("vectors alone are measured by absent words", "words === undefined || prominence", "prominence"),
  spreadText("a text has as many places as it has sellers", "copies.has(hit.id) || ", ""),
  spreadText(
    "under a flood an older listing of another thing takes the place of what was asked for",
    "isAtLeast(relevanceOf(hit), relevanceOf(best)) &&",
    ""
  ),
  spreadText(
    "under a flood what is more relevant than the first gives way to age",
    "isAtLeast(relevanceOf(best), relevanceOf(hit)) &&",
    ""
  ),
  spreadText("a copy takes the place of what it was copied from", "(a < b ? -1 : 1)", "(a < b ? 1 : -1)"),
  fusedBy("little of a short query is evidence", "const enoughMin = 0.2", "const enoughMin = -9"),
  fusedBy("much of a long query is no evidence", "const evidenceScale = 4", "const evidenceScale = 3"),
  fusedBy("words that are sure need a witness", 'bests.get("lexical") ?? 0) >= wordsAloneMin', "0) >= wordsAloneMin"),
  eitherWay("a generation keeps the way in which it was begun", "use(indexes[place.method])", "use(indexes.scan)"),
  eitherWay("an embedded database scans", 'asked === "hnsw" || database === "server"', "true"),
  fusedBy("a model's best hit needs a witness", 'bests.get("semantic") ?? 0) >= bestMin', "-1) >= bestMin"),
  fusedBy("means that were asked alone always fit", "return !isAlone || known", "return !isAlone || isAlone || known"),
  fusedBy("what is not alone is measured as if it were", "return !isAlone || known", "return known"),
  fusedBy("what means do not name fits", "?? least)", "?? 9)"),
  fusedBy("a hit reported only for its prominence is ranked", "if (isAside === true) return", ""),
  fusedBy(
    "what is not beyond chance is a witness",
    "isWitnessed(hit) && (evident.has(hit.id) || isFit(hit))",
    "isWitnessed(hit)"
  ),
  fusedBy("ranks order what words are not sure of", "return isByRelevance ?", "return (false as boolean) ?"),
  fusedBy(
    "lexical and vector relevances are mixed with a model's",
    "?? 0) >= bestMin || isModelAsked",
    "?? 0) >= bestMin"
  ),
  fusedBy("what is no answer is shown though a model was asked", "isModelAsked ? [] :", ""),
  fusedBy("all that is no answer is shown", ".slice(0, nearestMax)", ""),
  fusedBy("a question in other words finds nothing", "return isModelAsked ? []", "return !isModelAsked ? []"),
  fusedBy("what has a small share of the best is shown", "score >= relevanceMin * all[0]!.score", "score >= 0"),
  fusedBy("what is beyond chance alone is no answer", "? witnessed : all.filter(isFit)", "? witnessed : []"),
  coded("room for vectors is taken for vectors", "if (place < this.#size) chosen.push(place)", "chosen.push(place)"),
  coded("of a group only one is chosen", "bits &= bits - 1", "bits = 0"),
  quantized("the background is that of a few", "if (this.size < backgroundFrom) return undefined", ""),
  quantized("a uniform background gives a prominent hit", "deviation < 1e-6 ? undefined", "deviation < 0 ? undefined"),
  quantized("the background samples all vectors", "const backgroundMax = 1_000", "const backgroundMax = 100_000"),
  spreadText("one seller fills the first page of a search", ">= ofOneSellerMax)", "> 1_000)"),
  ranked(
    "what is alike adds to the word itself",
    "`greatest(${worthOf()}, ${worthOf()})`",
    "`${worthOf()} + ${worthOf()}`"
  ),
  ranked(
    "a weight's type makes a statement of its own",
    "[term.tsquery, String(term.weight)]",
    "[term.tsquery, term.weight as never]"
  ),
  ranked("each number of terms is a statement of its own", "const placesOf = [0, 2, 4, 8, 16]", "const placesOf = [0]"),
  ranked(
    "filtered hits are searched by the rarer words only",
    "if (hits.length >= Math.min(limit, fewHits))",
    "if (true)"
  ),
  ranked(
    "all that passes is ranked for any words",
    "scanAll(terms).documents > budget",
    "scanAll(terms).documents > Infinity"
  ),
  ranked("rare terms are read in the order of ids", '${isCommon ? "id" : "id + 0"}', "id"),
  ranked("what many hold is all read", '${isCommon ? "id" : "id + 0"}', "id + 0"),
  known("a few words are joined with all lexemes", 'collate "C" limit 1)`', 'collate "C")`'),
  spelling("two letters that are other are one slip", "&& isSwapped)", "&& true)"),
  spelling("a rarer word is meant", "Math.min(first, found ?? first)", "found ?? first"),
  spelling("a letter more is two slips", "return tail === left", "return tail === left + 1"),
  texts("texts that share little are held together", "areAlike(first, sketch)", "true"),
  texts("texts that share enough are not held together", ">= alikeShare * Math.min", ">= 2 * Math.min"),
  texts("a text is held together with the last it is like", "group < found && ", "true && "),
  ranked("documents with only similar words are not candidates", "[...alike, ...query.related]", "query.related"),
  planned("related words alone complete a pass", "{ ...plan, conditions:", "{ complete: true, conditions:"),
  readBy("words that are alike are worth as much as the word", "const alikeShare = 0.7", "const alikeShare = 2"),
  written("letters keep their marks", "withoutMarks(text.slice(0, charactersMax)", "(text.slice(0, charactersMax)"),
  written("Russian is stemmed as English", 'cyrillic.test(text) ? "russian"', 'cyrillic.test(text) ? "english"'),
  spoken("one small word makes a language", "const smallWordsMin = 2", "const smallWordsMin = 1"),
  spoken(
    "every listing is stemmed as English",
    "if (language === indexLanguage || held.length <= best.count",
    "if (true as boolean || held.length <= best.count"
  ),
  spoken("words of English make a language", "|| held.every((word) => ambiguous.has(word))", ""),
  known(
    "queries are read in the index's language alone",
    "const others = foreignIn(spoken)",
    "const others = foreignIn('')"
  ),
  known("small words of other languages are missing", "&& isSmall(word, others) ? []", "&& false ? []"),
  readBy("words side by side are worth no more than apart", "const phraseShare = 0.15", "const phraseShare = 0"),
  readBy("one known part makes a compound", "&& found[2 * at + 1]!.some(isHeld)", ""),
  readBy("what is unknown is not missing", "unknown.reduce((sum, one) => sum + missing(one), 0)", "0"),
  {
    name: "a slow provider is waited for by every search",
    changes: [
      {
        file: "plugins/search-semantic/provider/QueryVectors.ts",
        from: 'if (pace === "slow") return yield* tooSlow',
        to: ""
      }
    ],
    ...provided
  },
  {
    name: "a search waits for the question whether a slow provider is fast again",
    changes: [
      {
        file: "plugins/search-semantic/provider/QueryVectors.ts",
        from: 'if (pace === "probe") return yield* tooSlow',
        to: ""
      }
    ],
    ...provided
  },
  rare("common filters are counted with every search", "(until) => until > now", "() => false"),
  rare("what passes outlives the catalog it is of", "before === edition", 'before !== ""'),
  rare("what passes is kept for ever", "now - at < listedMillis", "now >= at"),
  rare("filter results are cached without an edition", "else if (edition !== undefined) lists.set(", "else lists.set("),
  rare("common filters are never counted again", "now + commonMillis", "Infinity"),
  again("a ranking is kept for ever", "at - one.at < keptMillis", "at >= one.at"),
  again("a ranking outlives what it was made from", "one.edition === edition.value", 'one.edition !== ""'),
  again("a ranking is kept from the first time on", "isAgain && isWhole ? listing", "isWhole ? listing"),
  again("a partial ranking is kept", "listing.missing.length === 0", "listing.missing.length >= 0"),
  again("a ranking that a reranker failed is kept", 'listing.reranking !== "failed"', "isAgain"),
  again("a branch without an edition is cached", "if (edition === undefined) return Option.none()", ""),
  again("a search waits for what saves time", "Effect.timeoutOption(patience),", "Effect.timeoutOption(1e9),"),
  again("a search fails by what saves time", "Effect.catch(() => Effect.succeedNone)", "Effect.orDie"),
  kept("how well a query is answered is kept for ever", "now - at < keptMillis", "now >= at"),
  kept(
    "what one branch found is the answer of two",
    'branches.map(({ mode }) => mode).join(" ")',
    "branches.length > 0"
  ),
  bounded("similar words are looked up for every word", ".slice(0, alikeWordsMax)", ""),
  known("more than four unknown words get substitutes", ".slice(0, substitutesMax)", ""),
  known(
    "a word of three letters matches as a prefix",
    "const substituteLengthMin = 4",
    "const substituteLengthMin = 3"
  ),
  known(
    "a correctly spelled word matches similar spellings",
    "const isSpelt = seen[at].some((one) => one.word === word)",
    "const isSpelt = false as boolean"
  ),
  readBy(
    "words of the medium are searched beside others",
    "const own = discriminative.length === 0 ? all : discriminative",
    "const own = all"
  ),
  readBy("a word that listings hold is explained", "|| !heldWords.has(covers[0])", "|| true"),
  readBy(
    "what no listing is about explains a word",
    "relations.filter((one) => one.about.some((word) => heldAbout.has(word)))",
    "relations"
  ),
  numbered("a number is worth a word", "const numberShare = 0.5", "const numberShare = 1"),
  evident("words of the medium are evidence", "Math.max(common, held", "Math.max(0 * common, held"),
  evident(
    "the listings of one seller make a word common",
    "? [origins, state.origins]",
    "? [documents, state.documents]"
  ),
  counted(
    "free listings make a word common",
    "const isProven = (row?.count ?? 0) > 0",
    "const isProven = (row?.count ?? 0) < 0"
  ),
  inFile("search-lexical/refreshStatistics.ts", "catalog/search/fewProven.daily.test.ts")(
    "free listings make a word of a small catalog common",
    "const isProven = (row?.count ?? 0) > 0",
    "const isProven = (row?.count ?? 0) >= 20"
  ),
  evident("free listings make a word frequent", "state.proven === true ?", "(false as boolean) ?"),
  evident("a small catalog of one trade has no word of it", "const priorOrigins = 200", "const priorOrigins = 0"),
  usual("what a few providers use is common", "const usualMin = 0.08", "const usualMin = 0.01"),
  usual("a listing is not paid by definition", "if (byDefinition.has(singular)) return 1", ""),
  usual("services are something else than a service", 'replace(/(?<=[^su])s$/, "")', "trim()"),
  asking("asking in other languages says something", "foreignFraming.has(word) ||", "false ||"),
  asking("asking in Chinese says something", 'query.replace(unspacedFraming, " ")', "query"),
  related("a phrase is found wherever its words are", "at <= last + 1 + gapMax", "at >= 0"),
  related("a word counts for every phrase it is in", "if (covers.every((word) => covered.has(word))) return false", ""),
  related("what phrases are about is unbounded", ".slice(0, relationsMax)", ""),
  fusedBy("a pair of characters is no word", "Math.ceil([...run].length / 2)", "1"),
  fusedBy("the statistic decides for an operator's model", '|| bests.has("semantic") ? undefined', "? undefined"),
  translated(
    "an English query is read as Spanish",
    "if (words.some((word) => isSmallEnglish(word) && !bothSmall.has(word))) return []",
    ""
  ),
  translated("a word of English alone is Spanish", "isSpanish ? chosen(words, matches) : []", "chosen(words, matches)"),
  translated("a character of an unknown word is one", "length > 1 || !(isLeft(from - 1) || isLeft(from + 1))", "true"),
  translated("the beginning of a word in Katakana is one", "!isWithin || entry.length > 3", "true"),
  translated("short entries come first", "b.text.length - a.text.length", "a.text.length - b.text.length"),
  translated("a word is in several entries", "!places.some((place) => taken.has(place)) &&", ""),
  translated(
    "pairs between entries are missing",
    "filter((at) => covered.has(at + 1))",
    "filter((at) => at < from + length - 1)"
  ),
  translated("words of other languages are unbounded", ".slice(0, translationsMax)", ""),
  translatedSplit("small words of Spanish say something", "(isForeign && isSmallSpanish(word)) ||", ""),
  {
    name: "settings are chosen on the evaluated set",
    changes: [{ file: "test/relevance/leaveOneSetOut.ts", from: "at === left ? sum :", to: "at === -1 ? sum :" }],
    ...leftOut
  },
  readBy("leaves are no form of a leaf", "(?:ve?|fe?)$/u", "(?:xx)$/u"),
  known("a word's own forms are alike to it", "own.every(({ lexeme }) => lexeme !== counted.lexeme)", "true"),
  known("words outlive the statistics", "if (now === asOf) return", 'if (asOf !== "") return'),
  known("a missing provider of similar words is cached", "if (seen[at] === undefined) continue", "seen[at] ??= []"),
  fedBack(
    "copies that cost nothing expand a query",
    "mayTeach === undefined ? sql`true` :",
    "mayTeach === undefined || true ? sql`true` :"
  ),
  fedBack("the best documents expand nothing", "const share = 0.4", "const share = 0"),
  split("a repeated word counts without end", "if (seen >= bounds.timesMax) continue", ""),
  split("a list of something is about lists", 'bare.replace(amountOf, " ")', "bare"),
  split("a currency code is read as one in any context", "(isPlain && plainCodes.has(word))", "plainCodes.has(word)"),
  understood("a call may cost any amount", "> (isCents ? 100 * callPriceMax : callPriceMax)", "> 1e9"),
  understood(
    "an amount before large units is a price",
    "${end}`,\n    `(?:${lead})?${start}between",
    "`,\n    `(?:${lead})?${start}between"
  ),
  tabled("a table that was changed is believed", "Hex.encode(crypto.sha256(bytes)) !== tableHash || ", ""),
  tabled("a dictionary that was changed is believed", " || Hex.encode(crypto.sha256(phrases)) !== phrasesHash", ""),
  tabled("a mistyped word has no vector", "if (mistyped !== undefined)", "if (false as boolean)"),
  tabled("words of any likeness mean the same", "products[at]! < least * this.#lengths[from + at]! || ", "")
]
