// The lexical index and its ranking on a real database.
import { expect } from "@effect/vitest"
import { Context, Effect, Layer, Option, Scope } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { type ResourceDocument, Search } from "../../../plugins/catalog/contract.ts"
import { Observers, searchRegistry } from "../../../plugins/catalog/search/SearchRegistry.ts"
import { Feedback } from "../../../plugins/search-lexical/Feedback.ts"
import { type IndexState, LexicalStore } from "../../../plugins/search-lexical/LexicalStore.ts"
import { candidatesStatement, MemoryIndex } from "../../../plugins/search-lexical/postings/MemoryIndex.ts"
import { healthOf } from "../../../plugins/search-lexical/plugin.ts"
import { bestDocuments } from "../../../plugins/search-lexical/postings/scoreDocuments.ts"
import { type Passing, passingBy, rankDocuments, withEvidence } from "../../../plugins/search-lexical/rankDocuments.ts"
import { QueryReader } from "../../../plugins/search-lexical/QueryReader.ts"
import { countsOf } from "../../../plugins/search-lexical/Vocabulary.ts"
import { countStatements } from "../../support/countStatements.ts"
import { describeDatabases, onOneDatabase } from "../../support/databases.ts"
import { resourceDocument } from "./resourceDocument.ts"

const named = (id: number, serviceName: string, description = "", tags: ReadonlyArray<string> = []) =>
  resourceDocument({ id: BigInt(id), serviceName, description, tags, resource: `https://seller-${id}.example/api` })

const few: ReadonlyArray<ResourceDocument> = [
  named(1, "Weather Forecast", "Forecasts for any city, updated hourly.", ["weather"]),
  named(2, "City Guide", "Restaurants, museums and the weather of a city.", ["travel"]),
  named(3, "Ledger Entries", "Reads entries of a ledger by key.", ["accounts"]),
  named(4, "Weather weather weather weather", "weather ".repeat(200), ["weather"]),
  named(5, "E-mail checker", "Validates e-mail addresses.", []),
  named(6, "screen_name lookup", "Sanctions screening.", [])
]

const crowdOf = (count: number): ReadonlyArray<ResourceDocument> =>
  Array.from({ length: count }, (_, at) => named(at + 101, `Service ${at}`, "A common thing."))

const all: Passing = (ids) => Effect.succeed(ids)

const copyOf = Effect.fnUntraced(function* (layer: Layer.Layer<MemoryIndex, never, SqlClient.SqlClient>) {
  return Context.get(yield* Layer.buildWithScope(Layer.fresh(layer), yield* Scope.make()), MemoryIndex)
})

/** An index in memory that reads every change before each search, and one that no search waits for. */
const inMemory = copyOf(MemoryIndex.layerWith(0))
const notInMemory = copyOf(MemoryIndex.layerWith(0, 0))

/** A reader of queries over an index in memory. */
const readerOver = Effect.fnUntraced(function* (index: MemoryIndex["Service"]) {
  const registry = searchRegistry.pipe(Layer.provide(Observers.layer))
  const layer = QueryReader.layer.pipe(Layer.provideMerge(registry), Layer.provide(Layer.succeed(MemoryIndex, index)))
  const services = yield* Layer.buildWithScope(Layer.fresh(layer), yield* Scope.make())
  return { reader: Context.get(services, QueryReader), words: Context.get(services, Search) }
})

/** An index of these documents in a language, without those of earlier tests. */
const indexed = (
  documents: ReadonlyArray<ResourceDocument>,
  language = "english",
  evidence?: Parameters<typeof LexicalStore.layer>[1]
) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql`truncate search_lexical_documents, search_lexical_terms, search_lexical_state restart identity`
    const store = yield* Effect.provide(Effect.service(LexicalStore), LexicalStore.layer(language, evidence))
    yield* store.write(documents)
    yield* store.refresh
    yield* store.scannedTo(documents.at(-1)?.id ?? 0n, true)
    const kept = yield* copyOf(MemoryIndex.layer)
    yield* kept.load(yield* store.answering)
    const { reader, words } = yield* readerOver(kept)
    const index = yield* inMemory
    yield* index.load(yield* store.answering)
    const feedback = yield* Effect.provide(
      Effect.service(Feedback),
      Feedback.layer.pipe(Layer.provide(Layer.succeed(MemoryIndex, index)))
    )
    const search = Effect.fnUntraced(function* (query: string, limit = 20) {
      const state = yield* store.answering
      return yield* rankDocuments(index, state, yield* reader.read(query, state), { passing: all, limit })
    })
    return {
      sql,
      index,
      feedback,
      // Each refresh has its own time.
      store: { ...store, refresh: Effect.andThen(TestClock.adjust("1 second"), store.refresh) },
      reader,
      search,
      words,
      ids: (query: string) => Effect.map(search(query), (hits) => hits.map(({ id }) => Number(id)))
    }
  })

describeDatabases(
  "the lexical ranking",
  onOneDatabase((it) => {
    it.effect("lexical search stems, splits identifiers, joins compounds and ranks names first [S129]", () =>
      Effect.gen(function* () {
        const { ids } = yield* indexed(few)
        expect((yield* ids("forecasting the weather"))[0]).toBe(1)
        expect(yield* ids("ledger entry")).toEqual([3])
        expect(yield* ids("email validation")).toEqual([5])
        expect(yield* ids("screenName")).toEqual([6])
        const guide = yield* ids("weather in a city")
        expect(guide.indexOf(2)).toBeLessThan(guide.indexOf(4))
      })
    )

    it.effect("adjacent words in query order rank above the same words apart", () =>
      Effect.gen(function* () {
        const { ids, search } = yield* indexed([
          named(1, "First", "The header of letters for every block."),
          named(2, "Second", "Letters of every block header for the."),
          ...few.map((one) => ({ ...one, id: one.id + 10n }))
        ])
        expect(yield* ids("block header")).toEqual([2, 1])
        expect(yield* ids("a block headers")).toEqual([2, 1])
        const [equal, alike] = yield* search("header block")
        expect(equal!.score).toBe(alike!.score)
        expect((yield* ids("header of a block"))[0]).toBe(1)
      })
    )

    it.effect("a keyword-stuffed resource gains nothing over an honest one", () =>
      Effect.gen(function* () {
        const { ids } = yield* indexed(few)
        const found = yield* ids("weather forecast")
        expect(found[0]).toBe(1)
      })
    )

    it.effect("typos and partial words are matched; words in no listing match nothing", () =>
      Effect.gen(function* () {
        const { ids } = yield* indexed(few)
        expect((yield* ids("wether forcast"))[0]).toBe(1)
        expect((yield* ids("resta"))[0]).toBe(2)
        expect(yield* ids("xyzzy plugh")).toEqual([])
        expect(yield* ids("the of and")).toEqual([])
        expect(yield* ids("?!… -- ;'\"\\")).toEqual([])
        expect(yield* ids("'; drop table search_lexical_documents; --")).toEqual([])
      })
    )

    it.effect("a word that names the medium is searched only when alone", () =>
      Effect.gen(function* () {
        const { ids } = yield* indexed([...few, named(20, "Endpoint", "An API tool."), ...crowdOf(20)])
        expect(yield* ids("museums API endpoint")).toEqual([2])
        expect((yield* ids("API endpoint"))[0]).toBe(20)
      })
    )

    it.effect("free listings on made-up origins make no word common", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const at = (one: ResourceDocument) => ({ ...one, origin: Option.some(`https://seller-${one.id}.example`) })
        const things = "tide orchard glacier violin passport bakery satellite beehive ferry archive".split(" ")
        const sellers = Array.from({ length: 30 }, (_, place) =>
          at(named(place + 1, `${things[place % 10]} ${["forecast", "appraisal", "history"][Math.floor(place / 10)]}`))
        )
        const flood = Array.from({ length: 120 }, (_, place) => at(named(place + 1_000, "Tide", "A tide of tides.")))
        const of = (id: string) => sql`${sql.literal(id)} < 1000`
        const proven = { any: of, established: of }
        const { ids, store } = yield* indexed([...sellers, ...flood], "english", proven)
        expect((yield* store.answering).origins).toBe(30)
        const counted = sql<{ origins: number }>`select origins from search_lexical_terms where lexeme = 'tide'`
        expect((yield* counted)[0]?.origins).toBe(3)
        expect((yield* ids("tide appraisal"))[0]).toBe(11)
        // However few have evidence; if none has, all are counted.
        const { store: few } = yield* indexed([...sellers.slice(0, 2), ...flood], "english", proven)
        expect((yield* few.answering).origins).toBe(2)
        expect((yield* counted)[0]?.origins).toBe(1)
        // A payment of dust is evidence and establishes nothing: then no word is common.
        const dusty = { any: () => sql`true`, established: () => sql`false` }
        const { ids: among, store: young } = yield* indexed([...sellers, ...flood], "english", dusty)
        expect((yield* young.answering).origins).toBe(0)
        expect((yield* among("tide appraisal"))[0]).toBe(11)
        const { store: none } = yield* indexed(flood, "english", proven)
        expect((yield* none.answering).origins).toBe(120)
        expect((yield* counted)[0]?.origins).toBe(120)
      })
    )

    it.effect("free copies do not give a query the words of their writer", () =>
      Effect.gen(function* () {
        const sellers = Array.from({ length: 30 }, (_, at) => named(at + 1, `Harbour ${at % 3 === 0 ? "tide" : "log"}`))
        const flood = Array.from({ length: 8 }, (_, at) => named(at + 1_000, "Tide", "A tide by zorblat, zorblat."))
        const { feedback, reader, store } = yield* indexed([...sellers, ...flood])
        const state = yield* store.answering
        const wordsOf = (text: string, mayTeach?: Parameters<typeof feedback.widen>[4]) =>
          Effect.gen(function* () {
            const read = yield* feedback.widen(text, yield* reader.read(text, state), state, all, mayTeach)
            return read.related.flatMap(({ lexemes }) => lexemes)
          })
        expect(yield* wordsOf("tide")).toContain("zorblat")
        expect(yield* wordsOf("tides", (ids) => Effect.succeed(ids.filter((id) => id < 1_000n)))).not.toContain(
          "zorblat"
        )
      })
    )

    it.effect("a phrase's topic is searched only where its word is insufficient", () =>
      Effect.gen(function* () {
        const { ids, reader, store } = yield* indexed([...few, named(20, "Snow", "Depth of snow."), ...crowdOf(20)])
        const state = yield* store.answering
        expect(yield* ids("snow")).toEqual([20])
        expect((yield* ids("snowstorm"))[0]).toBe(1)
        const massOf = (query: string) => Effect.map(reader.read(query, state), ({ mass }) => mass)
        const [explained, unexplained, unknown] = [
          yield* massOf("snowstorm"),
          yield* massOf("horoscope"),
          yield* massOf("qwzxv")
        ]
        expect(unexplained).toBe(unknown)
        expect(explained).toBeLessThan(unknown)
      })
    )

    it.effect("a rare word of a long question marks its holders; typos do not", () =>
      Effect.gen(function* () {
        const others = Array.from({ length: 30 }, (_, at) => named(100 + at, "Weather Desk", "Weather of a city."))
        const one = named(99, "Fairs", "The fair of 1851.")
        const { index, reader, search, store } = yield* indexed([...few, ...others, one])
        const state = yield* store.answering
        const marked = Effect.fnUntraced(function* (query: string) {
          const hits = yield* withEvidence(index, state, yield* reader.read(query, state), yield* search(query, 50))
          return hits.filter(({ isEvident }) => isEvident === true).map(({ id }) => Number(id))
        })
        expect(yield* marked("do my neighbours really enjoy old museums on sundays")).toEqual([2])
        expect(yield* marked("do my neighbours really enjoy what came after 1851")).toEqual([])
        expect(yield* marked("museuns")).toEqual([])
        expect(yield* marked("what about the weather for my neighbours")).toEqual([])
      })
    )

    it.effect("among few documents no term is discriminative", () =>
      Effect.gen(function* () {
        const { reader, store } = yield* indexed(few)
        const { discriminative } = yield* reader.read(
          "do my neighbours really enjoy old museums",
          yield* store.answering
        )
        expect(discriminative).toBeUndefined()
      })
    )

    it.effect("an unseen word's weight is capped at the maximum idf", () =>
      Effect.gen(function* () {
        const { search } = yield* indexed([named(1, "Weather", "Of any city.")])
        const [hit] = yield* search("weather tomorrow morning")
        expect(hit!.relevance).toBeGreaterThan(0.2)
        expect(hit!.relevance).toBeLessThan(0.3)
      })
    )

    it.effect("at most four unknown words are corrected, and none of three letters", () =>
      Effect.gen(function* () {
        const names = ["astrology", "botany", "chemistry", "dentistry", "economics", "farming"]
        const { ids, reader, store } = yield* indexed(names.map((name, at) => named(at + 1, name)))
        const slips = names.map((name) => name.replace(/^(..)(.)(.)/, "$1$3$2"))
        expect((yield* ids(slips.join(" "))).toSorted()).toEqual([1, 2, 3, 4])
        expect(yield* ids(slips[5]!)).toEqual([6])
        expect(yield* ids("bot")).toEqual([])
        expect(yield* ids("bota")).toEqual([2])
        // Unknown words count as missing, however many.
        const state = yield* store.answering
        const lost = Array.from({ length: 73 }, (_, at) => `qx${String.fromCharCode(97 + (at % 26))}${at}zzy`)
        expect((yield* reader.read(`botany ${lost.join(" ")}`, state)).terms).toHaveLength(1)
      })
    )

    it.effect("letters match apart from digits, unspaced scripts by pairs", () =>
      Effect.gen(function* () {
        const { ids } = yield* indexed([
          named(1, "pdf2text"),
          named(2, "天气预报"),
          named(3, "Text of a PDF"),
          named(4, "오늘 날씨를")
        ])
        expect(yield* ids("pdf2text")).toEqual([1, 3])
        expect((yield* ids("pdf to text")).toSorted()).toEqual([1, 3])
        expect(yield* ids("天气")).toEqual([2])
        expect(yield* ids("气预")).toEqual([2])
        expect(yield* ids("날씨")).toEqual([4])
      })
    )

    it.effect("words match with and without diacritics", () =>
      Effect.gen(function* () {
        const { ids } = yield* indexed([...few, named(7, "Übersetzer", "Straßennamen, pronóstico y prévisions météo.")])
        for (const query of ["ubersetzer", "ÜBERSETZER", "strassennamen", "prevision meteo", "Météo"])
          expect(yield* ids(query), query).toEqual([7])
        // The lexicon has this one: listings in English follow.
        expect(yield* ids("pronostico")).toEqual([7, 1, 4, 2])
      })
    )

    it.effect("an English index also stems Russian words", () =>
      Effect.gen(function* () {
        const { ids } = yield* indexed([
          ...few,
          named(7, "Погода сейчас", "Текущая погода и прогноз на неделю по городам, forecasts by cities.", ["погода"])
        ])
        for (const query of ["городов", "неделями"]) expect(yield* ids(query), query).toEqual([7])
        // The lexicon has this one: listings in English follow.
        expect(yield* ids("погоду")).toEqual([7, 1, 4, 2])
        expect(new Set(yield* ids("forecasting"))).toEqual(new Set([1, 7]))
      })
    )

    it.effect("listings are stemmed by their languages, queries by each of those", () =>
      Effect.gen(function* () {
        const { ids, search, store } = yield* indexed([
          ...few,
          named(11, "Wohnungssuche", "Freie Wohnungen und Häuser mit Preisen für die Stadt", ["mieten"]),
          named(12, "Annuaire", "Trouve les médecins et les dentistes près de chez vous"),
          named(13, "Vuelos", "Encuentra los billetes económicos de avión y los compara"),
          named(14, "Orari", "Partenze e arrivi dei treni nelle stazioni"),
          named(15, "Receitas", "Receitas rápidas com os ingredientes que você tem"),
          named(16, "Woningen", "Huizen en woningen te huur in het centrum van de stad")
        ])
        for (const [query, id] of [
          ["Wohnung mit Preis", 11],
          ["Mieter Wohnung", 11],
          ["dentiste", 12],
          ["trouver un médecin", 12],
          ["billete económico", 13],
          ["comparar billetes", 13],
          ["stazione", 14],
          ["treno", 14],
          ["receita rápida", 15]
        ] as const)
          expect(yield* ids(query), query).toEqual([id])
        // All six, and English as usual.
        expect((yield* store.answering).spoken.split(",")).toHaveLength(6)
        expect((yield* ids("forecasting the weather"))[0]).toBe(1)
        // Small words of those languages do not count as missing.
        const [plain, framed] = [yield* search("dentiste"), yield* search("un dentiste pour vous")]
        expect(framed[0]!.relevance).toBe(plain[0]!.relevance)
      })
    )

    it.effect("an English catalog is read in English alone", () =>
      Effect.gen(function* () {
        const { ids, store } = yield* indexed([
          ...few,
          named(7, "La Liga", "League scores"),
          named(8, "Removals", "Van rental, price per hour, via Rotterdam")
        ])
        expect((yield* store.answering).spoken).toBe("")
        expect(yield* ids("la liga score")).toEqual([7])
        expect(yield* ids("renting vans")).toEqual([8])
      })
    )

    it.effect("a joined word is found by its parts where documents have both", () =>
      Effect.gen(function* () {
        const { ids } = yield* indexed([
          named(1, "Wetterdienst", "Wetter und Vorhersage"),
          named(2, "Screen shots"),
          named(3, "Vorhersagewert"),
          named(4, "Shot")
        ])
        expect(yield* ids("wettervorhersage")).toEqual([1])
        expect((yield* ids("screenshots"))[0]).toBe(2)
        expect(yield* ids("vorhersagewert")).toEqual([3])
        expect(yield* ids("wetterxqzzt")).toEqual([])
      })
    )

    it.effect("words are read from the cache until the statistics are refreshed", () =>
      Effect.gen(function* () {
        const { reader, store, words } = yield* indexed(few)
        const state = yield* store.answering
        const read = (at: typeof state) => countStatements(reader.read("wether forecast", at))
        yield* words.registerSimilarTerms(() => Effect.succeed([]))
        expect((yield* read(state)).statements).toBeGreaterThan(0)
        const known = yield* read(state)
        expect([known.statements, known.value.terms.length]).toEqual([0, 2])
        yield* TestClock.adjust("10 minutes")
        yield* store.write([named(99, "Forecast")])
        yield* store.refresh
        const later = yield* store.answering
        expect(later.refreshedAt).not.toEqual(state.refreshedAt)
        const anew = yield* read(later)
        expect(anew.statements).toBeGreaterThan(0)
        expect(anew.value.mass).not.toBe(known.value.mass)
      }).pipe(Effect.scoped)
    )

    it.effect("statistics are counted again after a clock was set back", () =>
      Effect.gen(function* () {
        const { sql, store } = yield* indexed(few)
        const refreshed = (ago: string) =>
          Effect.andThen(
            sql`update search_lexical_state set documents = 5000, changed = 1,
              refreshed_at = clock_timestamp() - ${ago}::interval`,
            store.refresh
          )
        expect(yield* refreshed("1 minute")).toBe(false)
        expect(yield* refreshed("6 minutes")).toBe(true)
        expect(yield* refreshed("-1 year")).toBe(true)
        const [state] = yield* sql<{ past: boolean }>`select refreshed_at <= clock_timestamp() as past
          from search_lexical_state`
        expect(state).toEqual({ past: true })
      })
    )

    it.effect("words in scripts beyond the first plane are searched", () =>
      Effect.gen(function* () {
        const { ids } = yield* indexed([...few, named(7, "Dictionary", "𞤀𞤣𞤤𞤢𞤥 words")])
        expect(yield* ids("𞤀𞤣𞤤𞤢𞤥")).toEqual([7])
        expect(yield* ids("𞤀𞤣𞤤𞤢𞤢𞤥")).toEqual([7])
        expect(yield* ids("x𐌰𐌱𐌲𐌳𐌴y")).toEqual([])
      })
    )

    it.effect("a refresh of the statistics keeps the lexemes of words", () =>
      Effect.gen(function* () {
        const { reader, store } = yield* indexed(few)
        const read = (query: string, at: IndexState) => countStatements(reader.read(query, at))
        const state = yield* store.answering
        expect((yield* read("weather forecast", state)).statements).toBe(1)
        yield* store.write([named(99, "Botany")])
        yield* store.refresh
        const later = yield* store.answering
        // The changed rows, the statistics, and no word.
        expect((yield* read("weather forecast", later)).statements).toBe(3)
        expect((yield* read("forecast weather", later)).statements).toBe(0)
        const botany = yield* read("botany weather", later)
        expect([botany.statements, botany.value.covered]).toEqual([1, 1])
      })
    )

    it.effect("a correctly spelled word matches only itself and its own forms", () =>
      Effect.gen(function* () {
        const { ids, words } = yield* indexed([
          named(101, "Layer", "Map layers."),
          named(102, "Grade", "Marks an essay."),
          named(103, "Leaf", "Photographs of plants."),
          named(104, "Photograph"),
          ...few
        ])
        const asked = Effect.all([ids("lawyer"), ids("laywer"), ids("graders"), ids("leaves"), ids("photo")])
        const spelt = ["lawyer", "graders", "leaves", "photo"]
        const expanded = words.registerSimilarTerms((word) =>
          Effect.succeed(spelt.includes(word) ? [{ word, likeness: 1 }] : [{ word: "unheard", likeness: 0.9 }])
        )
        expect((yield* asked).map(([first]) => first)).toEqual([101, 101, 102, 103, 104])
        const found = yield* Effect.scoped(Effect.andThen(expanded, asked))
        expect(found.map(([first]) => first)).toEqual([undefined, 101, 102, 103, 104])
      })
    )

    it.effect("a stranger's free words change no correction, no prefix and no compound", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const sellers = [
          named(1, "Weather Forecast"),
          named(2, "Station Radio"),
          ...Array.from({ length: 20 }, (_, at) => named(at + 10, `Harbour Log ${at}`))
        ]
        const at = (one: ResourceDocument) => ({ ...one, origin: Option.some(`https://seller-${one.id}.example`) })
        const of = (id: string) => sql`${sql.literal(id)} < 1000`
        const claim = (text: string) => named(1_000, text, text)
        // An established listing goes first if a claim is not more relevant by three tenths.
        const share = 1 / 1.3
        const firstOf = Effect.fnUntraced(function* (query: string, claims: ReadonlyArray<ResourceDocument>) {
          const { reader, search, store, words } = yield* indexed([...sellers, ...claims].map(at), "english", {
            any: of,
            established: of
          })
          const spelt = ["weather", "harbour", "leather"]
          const similar = words.registerSimilarTerms((word) =>
            Effect.succeed(spelt.includes(word) ? [{ word, likeness: 1 }] : [])
          )
          return yield* Effect.scoped(
            Effect.gen(function* () {
              yield* similar
              const hits = yield* search(query)
              const { mistyped } = yield* reader.read(query, yield* store.answering)
              const best = hits[0]?.relevance ?? 0
              const honest = hits.find(({ id }) => id < 1_000n)
              return [Number(honest?.id), (honest?.relevance ?? -1) >= share * best, mistyped.length] as const
            })
          )
        })
        // Nearer misspellings, the misspelling itself, longer words, and a shifted seam.
        const crowd = (stem: string) => Array.from("abcdefghijklmnopqrstuvw", (letter) => `${stem}${letter}`).join(" ")
        for (const [query, text, corrected] of [
          ["wether", "weether wetther wethher wetheer", 1],
          ["wether", "wether", 1],
          ["wether", crowd("wether"), 1],
          ["weathe", `weathe ${crowd("weathe")}`, 0],
          ["weatherstation", "weat herstation", 0],
          ["leather", "leather", 0]
        ] as const) {
          const honest = query === "leather" ? [NaN, false, 0] : [1, true, corrected]
          expect([query, yield* firstOf(query, [])]).toEqual([query, honest])
          expect([query, text, yield* firstOf(query, [claim(text)])]).toEqual([query, text, honest])
        }
      })
    )

    it.effect("a word of any text counts less than the topic", () =>
      Effect.gen(function* () {
        const { ids, words } = yield* indexed([
          named(101, "Whales", "Large transfers."),
          named(102, "Shop", "Things to buy today."),
          ...few
        ])
        const frequencies: Readonly<Record<string, number>> = { whales: 0.000_01, buy: 0.001, today: 0.003 }
        const ordinary = words.registerSimilarTerms((word) =>
          Effect.succeed([{ word, likeness: 1, frequency: frequencies[word] ?? 0 }])
        )
        const asked = ids("what did the whales buy today")
        expect((yield* asked)[0]).toBe(102)
        expect((yield* Effect.scoped(Effect.andThen(ordinary, asked)))[0]).toBe(101)
      })
    )

    it.effect("a refined search keeps earlier hits when the last one is truncated [S117]", () =>
      Effect.gen(function* () {
        const crowd = Array.from({ length: 2_050 }, (_, at) => named(at + 1, `Shop ${at}`, "Parcels in the city."))
        const rare = [3_001, 3_002].map((id) => named(id, "Zebra", "Stripes."))
        const { ids } = yield* indexed([...crowd, ...rare])
        expect((yield* ids("zebra city")).slice(0, 2)).toEqual([3_001, 3_002])
      })
    )

    it.effect("expansion terms match under a narrow filter as without one", () =>
      Effect.gen(function* () {
        const other = Array.from({ length: 60 }, (_, at) => named(at + 100, `Ledger ${at}`, `Bookkeeping series ${at}`))
        const { feedback, index, reader, store } = yield* indexed([
          named(1, "Weather", "Rain, from a barometer and an anemometer."),
          named(2, "Weather report", "What the barometer and the anemometer said."),
          named(3, "Station", "Readings of barometer and anemometer."),
          ...other
        ])
        const state = yield* store.answering
        const read = yield* feedback.widen("weather", yield* reader.read("weather", state), state, all)
        const hits = yield* rankDocuments(index, state, read, { passing: all, limit: 20, among: [3n, 100n] })
        expect(hits.map(({ id }) => Number(id))).toEqual([3])
      })
    )

    it.effect("query expansion adds its best hits' discriminative terms, ranked below the query's", () =>
      Effect.gen(function* () {
        const other = Array.from({ length: 60 }, (_, at) => named(at + 100, `Ledger ${at}`, `Bookkeeping series ${at}`))
        const { feedback, index, reader, sql, store } = yield* indexed([
          named(1, "Weather", "Rain, from a barometer and an anemometer."),
          named(2, "Weather report", "What the barometer and the anemometer said."),
          named(3, "Station", "Readings of barometer and anemometer."),
          named(4, "Weather"),
          ...other
        ])
        const state = yield* store.answering
        const visible = (hidden: number) => passingBy(sql, (id) => sql`${sql.literal(id)} <> ${hidden}`)
        const found = Effect.fnUntraced(function* (hidden: number, query: string) {
          const read = yield* feedback.widen(query, yield* reader.read(query, state), state, visible(hidden))
          const hits = yield* rankDocuments(index, state, read, { passing: visible(hidden), limit: 20 })
          expect(hits.every(({ relevance }) => relevance > 0 && relevance < 1)).toBe(true)
          return hits.map(({ id }) => Number(id))
        })
        const hits = yield* found(0, "weather")
        // A holder of the query's own word ranks before one with expansion terms only.
        expect(hits.slice(0, 3).toSorted()).toEqual([1, 2, 4])
        expect(hits[3]).toBe(3)
        expect(hits).toHaveLength(4)
        expect(yield* found(0, "xyzzy")).toEqual([])
      })
    )

    it.effect("similar terms match behind the word itself where a provider supplies them", () =>
      Effect.gen(function* () {
        const { ids, words } = yield* indexed([
          named(1, "Parcel", "Where it is, for any carrier."),
          named(2, "Package", "Where it is, for any carrier."),
          named(3, "Bundle", "Bundles of newspapers."),
          named(4, "Package parcel", "Bundles and where they are."),
          named(9, "Crate"),
          ...["barrel", "basket", "casket", "drum", "hamper", "keg"].map((name, at) => named(at + 10, name)),
          ...Array.from({ length: 40 }, (_, at) => named(at + 100, `Ledger ${at}`, "Bookkeeping of accounts"))
        ])
        const means: Readonly<Record<string, ReadonlyArray<string>>> = {
          package: ["packages", "parcel", "bundle"],
          sachet: ["parcel"],
          crate: ["crates", "barrel", "basket", "casket", "drum", "hamper", "keg"]
        }
        const registered = words.registerSimilarTerms((word, least) =>
          Effect.succeed((means[word] ?? []).map((one, at) => ({ word: one, likeness: least + 0.1 - at / 100 })))
        )
        expect(yield* ids("package carrier")).toEqual([2, 4, 1])
        const found = yield* Effect.scoped(
          Effect.andThen(registered, Effect.all([ids("package"), ids("sachet"), ids("package parcel"), ids("crate")]))
        )
        // A holder of the word gains nothing by a similar word, and loses by its length.
        expect(found[0].slice(0, 4)).toEqual([2, 4, 3, 1])
        expect(found[1].slice(0, 2)).toEqual([1, 4])
        expect(found[2].slice(0, 3).toSorted()).toEqual([1, 2, 4])
        // Six terms expand one word, in addition to its own forms.
        expect(found[3].toSorted((a, b) => a - b)).toEqual([9, 10, 11, 12, 13, 14, 15])
      })
    )

    it.effect("an older version never replaces a newer one; removed words are deleted", () =>
      Effect.gen(function* () {
        const { ids, sql, store } = yield* indexed([{ ...named(1, "Astrology"), version: 2 }])
        yield* store.write([{ ...named(1, "Geology"), version: 1 }])
        yield* store.refresh
        expect(yield* ids("astrology")).toEqual([1])
        yield* store.write([{ ...named(1, "Botany"), version: 3 }])
        yield* store.refresh
        expect(yield* ids("astrology")).toEqual([])
        expect(yield* ids("botany")).toEqual([1])
        expect(yield* sql`select lexeme from search_lexical_terms where lexeme like 'astrolog%'`).toEqual([])
      })
    )

    it.effect("the old language's index answers until the new one is complete", () =>
      Effect.gen(function* () {
        const { sql } = yield* indexed(few, "english")
        const before = yield* Effect.provide(Effect.service(LexicalStore), LexicalStore.layer("english"))
        const store = yield* Effect.provide(Effect.service(LexicalStore), LexicalStore.layer("simple"))
        const languages = Effect.map(
          sql<{ language: string }>`select distinct language from search_lexical_documents order by 1`,
          (rows) => rows.map(({ language }) => language)
        )
        // Each change is written into both.
        yield* before.write([{ ...few[0]!, version: 2 }, named(7, "Astrology")])
        expect(yield* languages).toEqual(["english", "simple"])
        yield* store.retire
        expect((yield* store.answering).language).toBe("english")
        yield* store.write(few)
        yield* store.refresh
        yield* store.scannedTo(6n, true)
        expect((yield* store.answering).language).toBe("simple")
        expect((yield* before.answering).language).toBe("english")
        // The latest settings decide: the earlier replica removes nothing.
        yield* before.retire
        expect(yield* languages).toEqual(["english", "simple"])
        yield* store.retire
        expect(yield* languages).toEqual(["simple"])
        // A replica with the removed language answers with the existing index, indexes for it, and builds no second
        // one.
        expect((yield* before.answering).language).toBe("simple")
        expect((yield* before.state).complete).toBe(true)
        yield* before.write([named(8, "Botany")])
        expect(yield* before.refresh).toBe(false)
        expect(yield* languages).toEqual(["simple"])
        expect(yield* sql`select id from search_lexical_documents where id in (7, 8) order by id`).toEqual([
          { id: 7n },
          { id: 8n }
        ])
      })
    )

    it.effect("search widens when a filter leaves too few candidates and misses nothing", () =>
      Effect.gen(function* () {
        const many = Array.from({ length: 1_500 }, (_, at) =>
          named(at + 1, `Service ${at}`, at % 3 === 0 ? "common data feed" : "common feed", [])
        )
        const { index, reader, sql, store } = yield* indexed(many)
        const state = yield* store.answering
        const read = yield* reader.read("common feed", state)
        const hits = yield* rankDocuments(index, state, read, {
          passing: passingBy(sql, (id) => sql`${sql.literal(id)} in (7, 700, 1400)`),
          limit: 20
        })
        expect(hits.map(({ id }) => id).toSorted((a, b) => Number(a - b))).toEqual([7n, 700n, 1_400n])
      })
    )

    it.effect("rare filters rank every match even if the words are common", () =>
      Effect.gen(function* () {
        const crowd = Array.from({ length: 3_000 }, (_, at) =>
          named(at + 1, "Weather city data", "Weather data of a city.")
        )
        const rare = [
          named(9_001, "Weather", "Data of a city."),
          named(9_002, "Tides", "City tides."),
          named(9_003, "Maps")
        ]
        const { index, reader, store } = yield* indexed([...crowd, ...rare])
        const state = yield* store.answering
        const read = yield* reader.read("weather data of a city", state)
        const among = rare.map(({ id }) => id)
        // The copy in memory, and one that still has to be loaded.
        for (const one of [index, yield* inMemory]) {
          const ranked = yield* rankDocuments(one, state, read, { passing: all, limit: 20, among })
          expect(ranked.map(({ id }) => Number(id))).toEqual([9_001, 9_002])
          expect(yield* rankDocuments(one, state, read, { passing: all, limit: 20, among: [] })).toEqual([])
        }
      })
    )

    it.effect("a ranking in memory needs no statement while the copy is fresh", () =>
      Effect.gen(function* () {
        const { index, reader, store } = yield* indexed([...few, ...crowdOf(40)])
        const state = yield* store.answering
        const read = yield* reader.read("weather forecast", state)
        const ranked = (one: MemoryIndex["Service"]) =>
          countStatements(rankDocuments(one, state, read, { passing: all, limit: 20 }))
        expect((yield* ranked(index)).statements).toBe(2)
        const kept = yield* copyOf(MemoryIndex.layer)
        yield* kept.load(state)
        const { statements, value } = yield* ranked(kept)
        expect(statements).toBe(0)
        expect(value).toEqual((yield* ranked(index)).value)
      })
    )

    it.effect("PostgreSQL answers until the index is in memory, with equal scores", () =>
      Effect.gen(function* () {
        const { index, reader, store } = yield* indexed([...few, ...crowdOf(40)])
        const state = yield* store.answering
        for (const query of ["weather in a city", "common thing", "block 'header'", "wether forcast"]) {
          const read = yield* reader.read(query, state)
          const options = { passing: all, limit: 20 }
          const loaded = yield* rankDocuments(index, state, read, options)
          const unloaded = yield* rankDocuments(yield* notInMemory, state, read, options)
          expect([query, unloaded]).toEqual([query, loaded])
          const { reader: another } = yield* readerOver(yield* notInMemory)
          expect([query, yield* another.read(query, state)]).toEqual([query, read])
        }
      })
    )

    it.effect("a copy holds the rows of all transactions, whatever their numbers", () =>
      Effect.gen(function* () {
        const { sql, store } = yield* indexed(crowdOf(1_200))
        yield* sql`alter table search_lexical_documents disable trigger search_lexical_documents_followed`
        // As text, 1000 comes before 99.
        yield* sql`update search_lexical_documents set xid = (case when id % 2 = 0 then '99' else '1000' end)::xid8`
        yield* sql`alter table search_lexical_documents enable trigger search_lexical_documents_followed`
        const index = yield* inMemory
        const state = yield* store.answering
        yield* index.load(state)
        expect((yield* index.whole(state))!.documents).toBe(1_200)
      })
    )

    it.effect("a copy reads the statistics after each refresh", () =>
      Effect.gen(function* () {
        const { store } = yield* indexed(few)
        // It reads changes once an hour, unless the statistics were refreshed.
        const index = yield* copyOf(MemoryIndex.layerWith(3_600_000))
        yield* index.load(yield* store.answering)
        const documents = Effect.gen(function* () {
          return (yield* index.whole(yield* store.answering))!.statisticsOf("weather").documents
        })
        expect(yield* documents).toBe(3)
        yield* store.write([named(7, "Weather archive")])
        expect(yield* documents).toBe(3)
        yield* store.refresh
        expect(yield* documents).toBe(4)
      })
    )

    it.effect("health names an index that is complete but not in memory", () =>
      Effect.gen(function* () {
        const { index } = yield* indexed(few)
        const stored = { complete: true, language: "english", scanned: 6n }
        expect(healthOf(stored, index)).toEqual({ state: "ready" })
        expect(healthOf(stored, yield* notInMemory)).toMatchObject({
          state: "ready",
          detail: expect.stringMatching(/not in memory/)
        })
      })
    )

    it.effect("each replica reads the changes of all replicas", () =>
      Effect.gen(function* () {
        const { index, sql, store } = yield* indexed(few)
        const other = yield* inMemory
        yield* other.load(yield* store.answering)
        const idsOf = Effect.fnUntraced(function* (one: MemoryIndex["Service"], lexeme: string) {
          const postings = yield* one.whole(yield* store.answering)
          const query = { terms: [{ lexemes: [lexeme], weight: 1 }], related: [] }
          return bestDocuments(postings!, query, { average: 10, max: 20 }).map(({ id }) => Number(id))
        })
        for (let version = 2; version < 20; version++) {
          const at = (id: number) => ({ ...named(id, `Botany ${100 + version}`), version })
          yield* store.write(version % 3 === 0 ? [at(7), at(8)] : [at(7)])
          for (const copy of [index, other]) {
            expect((yield* idsOf(copy, "botani")).toSorted()).toEqual(version < 3 ? [7] : [7, 8])
            expect(yield* idsOf(copy, String(100 + version))).toContain(7)
            expect(yield* idsOf(copy, String(99 + version))).not.toContain(7)
          }
        }
        expect((yield* index.whole(yield* store.answering))!.segments.length).toBeLessThan(4)
        // A replica of an earlier version writes without a transaction's number.
        yield* sql.unsafe(`update search_lexical_documents set document = '''geolog'':1A' where id = 8`)
        expect(yield* idsOf(other, "geolog")).toEqual([8])
        // A promoted standby gives numbers again that the copy's snapshot has seen.
        yield* sql`alter table search_lexical_documents disable trigger search_lexical_documents_followed`
        yield* sql.unsafe(`update search_lexical_documents set document = '''zoolog'':1A', xid = '3' where id = 8`)
        yield* sql`alter table search_lexical_documents enable trigger search_lexical_documents_followed`
        expect(yield* idsOf(other, "zoolog")).toEqual([])
        yield* sql`create or replace function kernel_server_identity() returns text language sql
          as 'select ''promoted'''`
        expect(yield* idsOf(other, "zoolog")).toEqual([8])
      })
    )

    it.effect("terms are looked up individually, however many lexemes exist", () =>
      Effect.gen(function* () {
        const { sql } = yield* indexed(crowdOf(2_000))
        yield* sql`vacuum analyze search_lexical_terms`.unprepared
        const explained = yield* sql<{ "QUERY PLAN": string }>`explain select w.word, t.documents
          from jsonb_to_recordset('[{"word": "thing"}]'::jsonb) w (word text)
          left join lateral ${countsOf(sql, "english", "w.word")} t on true`.unprepared
        const lines = explained.map((row) => row["QUERY PLAN"]).join("\n")
        expect(lines).toContain("search_lexical_terms_pkey")
        expect(lines).not.toContain("Seq Scan on search_lexical_terms")
      })
    )

    it.effect("candidates are read from the GIN index and not the table", () =>
      Effect.gen(function* () {
        const words = Array.from(
          { length: 400 },
          (_, at) => `topic${String.fromCharCode(97 + (at % 26))}${String.fromCharCode(97 + Math.floor(at / 26))}x`
        )
        const many = Array.from({ length: 3_000 }, (_, at) =>
          named(
            at + 1,
            `Service ${words[at % 400]}`,
            `${words[(at * 7) % 400]} ${words[(at * 13) % 400]} common ${at % 2 === 0 ? "usual" : ""}`,
            []
          )
        )
        const { reader, sql, store } = yield* indexed(many)
        yield* sql`vacuum analyze search_lexical_documents`.unprepared
        const state = yield* store.answering
        for (const query of ["topicabx topicbbx", "topicaax"]) {
          const read = yield* reader.read(query, state)
          const [text, parameters] = candidatesStatement(sql, state.language, read).compile()
          const explained = yield* sql.unsafe<{ "QUERY PLAN": string }>(`explain ${text}`, [...parameters]).unprepared
          const lines = explained.map((row) => row["QUERY PLAN"]).join("\n")
          expect(lines).toMatch(/Bitmap Index Scan on search_lexical_documents_gin/)
          expect(lines).not.toContain("Seq Scan on search_lexical_documents")
        }
      })
    )
  }),
  ["kernel", "search-lexical"]
)
