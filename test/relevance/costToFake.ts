// Measures the cost to pass a listing that one genuine customer paid for. The catalog has honest listings of the own
// sets, each paid once. For some victims and each of their words we add rivals that copy the victim and rivals stuffed
// with the exact words of the question, both at the victim's origin with its recipient and at a separate origin. The
// same rivals rise by each known attack, and we count how many pass, in search and on the first page of browsing. The
// bar: nothing passes below ten dollars and thirty days.
import { NodeServices } from "@effect/platform-node"
import { Effect } from "effect"
import { payerRiskMax, weighEvidence } from "../../plugins/catalog/store/weighEvidence.ts"
import type { DatabaseKind } from "../support/databases.ts"
import { type Facilitator, startFacilitator } from "../support/facilitator.ts"
import { type IngestedResource, ingest, listingsOf } from "./ingest.ts"
import { ownSet } from "./judged.ts"
import { untilIndexed } from "./untilIndexed.ts"

export interface Attack {
  readonly name: string
  /** Accounts that pay each rival, and the dollars that each of them pays. */
  readonly payers: number
  readonly each: number
  /** Days since the first payment. */
  readonly days: number
}

export const attacks: ReadonlyArray<Attack> = [
  { name: "verified payments, which cost nothing", payers: 0, each: 0, days: 0 },
  { name: "one payment of dust to oneself", payers: 1, each: 0.00001, days: 0 },
  { name: "forty payments of dust", payers: 40, each: 0.00001, days: 0 },
  { name: "one large payment to oneself", payers: 1, each: 1_000, days: 0 },
  { name: "nine dollars of nine accounts", payers: 9, each: 1, days: 0 },
  { name: "dust, and 29 days of patience", payers: 1, each: 0.00001, days: 29 },
  { name: "ten dollars of ten accounts", payers: 10, each: 1, days: 0 },
  { name: "dust, and 31 days of patience", payers: 1, each: 0.00001, days: 31 }
]

/** The cost of an attack that works, in dollars and days: money that returns to its owner counts in full. */
export const isBelowBar = ({ days, each, payers }: Attack): boolean => days < 30 && payers * Math.min(each, 1) < 10

export interface Passed {
  readonly attack: Attack
  /** Pairs of a listing and a question that it answers among the first three without rivals. */
  readonly asked: number
  /** Pairs with some rival before the listing. */
  readonly passed: ReadonlyArray<string>
  /** Pairs in which the listing has left the first page. */
  readonly buried: ReadonlyArray<string>
  /** Rivals before a victim on the first page of browsing, or victims that have left it. */
  readonly browsed: number
}

const dayMillis = 86_400_000

/** A payment by each account for each of these resources, with their listed text. */
export const pay = Effect.fnUntraced(function* (
  { sql }: Facilitator,
  names: ReadonlyArray<string>,
  { days, each, payers }: Pick<Attack, "days" | "each" | "payers">
) {
  const at = new Date(Date.now() - days * dayMillis)
  const risked = String(Math.min(Number(payerRiskMax), Math.round(each * Number(payerRiskMax))))
  const named = sql`r.key in (select jsonb_array_elements_text(${JSON.stringify(names)}::jsonb))`
  yield* sql`insert into catalog_claim_payers (resource_id, claim, payer, at, first_at, risked)
    select r.id, r.version_hash, 'G' || r.id || '-' || n, ${at}, ${at}, ${risked}::numeric
    from catalog_resources r, generate_series(1, ${payers}::int) n where ${named}`
  yield* sql`update catalog_activity a set settled = ${payers}::int, payers = ${payers}::int, earned = ${payers}::int,
    risked = ${payers}::int * ${risked}::numeric from catalog_resources r where r.id = a.resource_id and ${named}`
  const ids = yield* sql<{ id: bigint }>`select r.id from catalog_resources r where ${named}`
  yield* weighEvidence(
    sql,
    ids.map(({ id }) => id),
    at
  )
})

/** The honest catalog: `count` listings of different trades. */
const honestOf = (count: number): ReadonlyArray<IngestedResource> => {
  const all = (["trial", "judged", "second", "third", "fourth"] as const).flatMap((set) => listingsOf(ownSet(set)))
  const each = [...new Map(all.map((one) => [one.url + one.toolName, one])).values()].slice(0, Math.max(count, 60))
  const step = each.length / count
  return Array.from({ length: count }, (_, at) => ({ ...each[Math.floor(at * step)]!, name: `honest-${at}` }))
}

const wordsOf = (text: string): ReadonlyArray<string> => [...new Set(text.toLowerCase().match(/\p{L}{4,}/gu) ?? [])]

interface Question {
  readonly victim: IngestedResource
  readonly query: string
}

/** Questions about a victim: its name, the beginning of its description, and its two rarest words. */
const questionsOf = (victims: ReadonlyArray<IngestedResource>, honest: ReadonlyArray<IngestedResource>) => {
  const counts = new Map<string, number>()
  for (const { description } of honest)
    for (const word of wordsOf(description)) counts.set(word, (counts.get(word) ?? 0) + 1)
  return victims.flatMap((victim): ReadonlyArray<Question> => {
    const words = wordsOf(victim.description)
    const rare = words.toSorted((a, b) => counts.get(a)! - counts.get(b)! || b.length - a.length)
    const start = victim.description.split(/\s+/).slice(0, 6).join(" ")
    return [...new Set([victim.serviceName, start, ...rare.slice(0, 2)])].map((query) => ({ victim, query }))
  })
}

/** Copies and stuffed rivals, with the victim's name and with their own. */
const rivalsOf = ({ query, victim }: Question, at: number): ReadonlyArray<IngestedResource> => {
  const stuffed = {
    serviceName: query.slice(0, 32),
    description: `${query}. ${query}, ${query}: ${victim.serviceName}`,
    tags: wordsOf(query).slice(0, 5)
  }
  return [{}, stuffed].flatMap((said, text) =>
    [true, false].map((isUnderItsName): IngestedResource => {
      const name = `rival-${at}-${text}-${isUnderItsName ? "its" : "own"}`
      const url = isUnderItsName ? `${new URL(victim.url).origin}/${name}` : `https://${name}.example/v1`
      const options = isUnderItsName ? victim.options : victim.options.map((one) => ({ ...one, payTo: `G${name}` }))
      return { ...victim, ...said, name, key: name, url, options }
    })
  )
}

const namesAt = (facilitator: Facilitator, path: string) =>
  Effect.map(facilitator.ask(path), ({ json }) =>
    ((json.resources ?? json.items) as ReadonlyArray<{ name: string }>).map(({ name }) => name)
  )

const search = (facilitator: Facilitator, query: string) =>
  namesAt(facilitator, `/discovery/search?${new URLSearchParams({ query, limit: "50" })}`)

interface World {
  readonly database: DatabaseKind
  readonly honest: ReadonlyArray<IngestedResource>
  readonly rivals: ReadonlyArray<IngestedResource>
}

/** A facilitator with a catalog of the honest listings, paid for yesterday, and these rivals. */
const world = Effect.fnUntraced(function* ({ database, honest, rivals }: World, attack?: Attack) {
  const facilitator = yield* startFacilitator({ database, channels: 1 })
  // Rivals come after their victims.
  yield* facilitator.publishedBy(ingest(facilitator.sql, [...honest, ...rivals]))
  const paid = { payers: 1, each: 0.0001 }
  const honestSince = Math.max(1, (attack?.days ?? 0) + 1)
  yield* pay(
    facilitator,
    honest.map(({ key, name }) => key ?? name),
    { ...paid, days: Math.min(honestSince, 29) }
  )
  if (attack !== undefined && attack.payers > 0)
    yield* pay(
      facilitator,
      rivals.map(({ name }) => name),
      attack
    )
  yield* facilitator.sql`update search_lexical_state set changed = changed + 1`
  yield* untilIndexed(facilitator, honest.length + rivals.length)
  return facilitator
})

/** Plays each attack on a catalog of `count` honest listings, against some of them. */
export const costToFake = (database: DatabaseKind, count: number, victimsMax = 12, played = attacks) => {
  const honest = honestOf(count)
  const victims = honest.filter((_, at) => at % Math.ceil(count / victimsMax) === 0)
  const questions = questionsOf(victims, honest)
  const base = { database, honest, rivals: [] }
  return Effect.gen(function* () {
    const before = yield* Effect.scoped(
      Effect.flatMap(world(base), (facilitator) => Effect.forEach(questions, ({ query }) => search(facilitator, query)))
    )
    const asked = questions.filter(({ victim }, at) => before[at]!.slice(0, 3).includes(victim.name))
    const rivals = asked.flatMap(rivalsOf)
    return yield* Effect.forEach(played, (attack) =>
      Effect.scoped(
        Effect.gen(function* () {
          const facilitator = yield* world({ ...base, rivals }, attack)
          const [passed, buried]: [Array<string>, Array<string>] = [[], []]
          for (const [at, { query, victim }] of asked.entries()) {
            const names = yield* search(facilitator, query)
            const place = names.indexOf(victim.name)
            const first = names.findIndex((name) => name.startsWith(`rival-${at}-`))
            if (place < 0 || place >= 20) buried.push(query)
            if (first >= 0 && (place < 0 || first < place)) passed.push(query)
          }
          const page = yield* namesAt(facilitator, "/discovery/resources?limit=20")
          const last = page.findLastIndex((name) => name.startsWith("honest"))
          const ahead = page.slice(0, last + 1).filter((name) => name.startsWith("rival")).length
          const missing = Math.min(20, honest.length) - page.filter((name) => name.startsWith("honest")).length
          return { attack, asked: asked.length, passed, buried, browsed: ahead + missing } satisfies Passed
        })
      )
    )
  }).pipe(Effect.provide(NodeServices.layer)) as Effect.Effect<ReadonlyArray<Passed>, unknown>
}

/** Prints the table; returns whether the bar holds. */
export const printCostToFake = async (database: DatabaseKind, counts: ReadonlyArray<number>): Promise<boolean> => {
  let isHeld = true
  for (const count of counts) {
    console.log(`cost to fake, among ${count} listings that one customer each has paid for`)
    for (const { asked, attack, browsed, buried, passed } of await Effect.runPromise(costToFake(database, count))) {
      const fails = isBelowBar(attack) && passed.length + buried.length + browsed > 0
      if (fails) isHeld = false
      console.log(
        `  ${attack.name.padEnd(40)} passes ${passed.length} of ${asked}, buries ${buried.length}; ` +
          `browsing ${browsed}${fails ? "; BELOW THE BAR" : ""}`
      )
      if (fails) console.log(`    ${[...passed, ...buried].join(" | ")}`)
    }
  }
  return isHeld
}
