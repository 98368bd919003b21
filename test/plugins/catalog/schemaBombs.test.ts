// Schemas and values that are small to send and slow to validate: each is stopped by its work limit or never started,
// and honest ones are validated by the standard.
import { expect, it } from "@effect/vitest"
import { Clock, Effect, Fiber } from "effect"
import { describe } from "vitest"
import { makeCpuThrottle } from "../../../plugins/catalog/declaration/CpuThrottle.ts"
import { makeValidator } from "../../../plugins/catalog/declaration/validateInfo.ts"

type Json = Record<string, unknown>

const many = <A>(count: number, make: (at: number) => A): Array<A> => Array.from({ length: count }, (_, at) => make(at))
const named = (count: number, make: (at: number) => unknown): Json =>
  Object.fromEntries(many(count, (at) => [`p${at}`, make(at)]))
const of = (schema: Json): Json => ({ properties: { a: schema } })

const check = (schema: Json, info: unknown) => makeValidator()(info, schema, JSON.stringify(schema))

/** Without its limit the first takes half a minute, and the others at least a tenth of a second. */
const bombs: ReadonlyArray<readonly [name: string, schema: Json, info: Json, detail: string]> = [
  [
    "unique items, asked for again and again",
    of({ allOf: many(350, () => ({ uniqueItems: true })) }),
    { a: many(1_900, (i) => ({ i })) },
    "validating would take too long"
  ],
  [
    "alternatives for each of many values",
    of({ items: { anyOf: [...many(300, (at) => ({ required: [`k${at}`] })), {}] } }),
    { a: many(1_900, () => ({})) },
    "validating would take too long"
  ],
  [
    "long lists of required names for each of many values",
    of({ items: { required: many(4_000, (at) => `k${at}`) } }),
    { a: many(1_900, () => ({})) },
    "info/a/0: required"
  ],
  [
    "lists of dependent names for each of many values",
    of({ items: { dependentRequired: { a: many(600, () => "a") } } }),
    { a: many(600, () => ({ a: 1 })) },
    "validating would take too long"
  ],
  [
    "a long list of dependent names",
    of({ items: { dependentRequired: { a: many(3_000, () => "a") } } }),
    {},
    "the schema has too many parts"
  ],
  ["many parts that are false", { properties: named(3_000, () => false) }, {}, "the schema has too many parts"],
  [
    "a long text against a large pattern, for each of many values",
    of({ items: { pattern: "(a|b|c|ab|bc){1,60}x$" } }),
    { a: many(300, () => "abc".repeat(50)) },
    "info/a/0: pattern"
  ],
  [
    "a long text against a large pattern",
    of({ not: { pattern: "(a|b|c|ab|bc){1,60}x$" } }),
    { a: "abc".repeat(50_000) },
    "validating would take too long"
  ],
  [
    "patterns of names for each of many names",
    of({ patternProperties: Object.fromEntries(many(40, (at) => [`[a-z]{1,30}x${at}`, true])) }),
    { a: Object.fromEntries(many(1_900, (at) => [`abcdefgh${at}`, 1])) },
    "validating would take too long"
  ],
  [
    "many patterns",
    { properties: named(300, (at) => ({ pattern: `^[a-z]{1,400}(x|y|z${at})*$` })) },
    {},
    "the schema cannot be compiled, or a pattern needs backtracking"
  ],
  ["many parts", { properties: named(450, () => ({})) }, {}, "the schema has too many parts"],
  [
    "many keywords in few parts",
    { allOf: many(390, () => ({ minimum: 1, maximum: 2, multipleOf: 3, minLength: 1 })) },
    {},
    "the schema has too many parts"
  ],
  [
    "a reference into an example",
    { $ref: "#/examples/0", examples: [{ allOf: many(900, () => ({ minimum: 1 })) }] },
    {},
    "$ref does not lead to a schema"
  ],
  [
    "a reference to an unknown keyword",
    { $ref: "#/x/y", x: { y: { uniqueItems: true } } },
    {},
    "$ref does not lead to a schema"
  ]
]

describe("a schema made to take long", () => {
  it.each(bombs)("a schema made to take long is stopped: %s [S256][S288]", (_, schema, info, detail) => {
    expect(check(schema, info)?.detail).toBe(detail)
  })

  it.each([
    { $async: true, required: ["a"] },
    { properties: { a: { $ref: "#/$defs/b" } }, $defs: { b: { $async: true, type: "number" } } },
    { $id: "https://a.example/b" }
  ])("a keyword that changes what a validator returns is refused: %j", (schema) => {
    expect(check(schema, { a: "" })?.detail).toMatch(/^\$(async|id) is not supported$/)
  })

  it("the work limit is counted anew for each validation", () => {
    const validate = makeValidator()
    const schema = of({ items: { anyOf: many(20, (at) => ({ required: [`k${at}`] })) } })
    const text = JSON.stringify(schema)
    const info = (count: number) => ({ a: many(count, () => ({ k19: 1 })) })
    expect(validate(info(1_500), schema, text)?.detail).toBe("validating would take too long")
    for (let time = 0; time < 20; time++) expect(validate(info(200), schema, text)).toBeUndefined()
  })
})

describe("an honest schema", () => {
  const valid = (schema: Json, info: unknown) => check(schema, info) === undefined
  it("the validator follows the JSON Schema standard where it is our own", () => {
    expect(valid({ uniqueItems: true }, [1, "1", { a: 1, b: 2 }, [1]])).toBe(true)
    expect(
      valid({ uniqueItems: true }, [
        { a: 1, b: 2 },
        { b: 2, a: 1 }
      ])
    ).toBe(false)
    expect(valid({ uniqueItems: false }, [1, 1])).toBe(true)
    expect(valid({ uniqueItems: true }, "no array")).toBe(true)
    expect(valid({ enum: [1, "a", null, { a: [1, { b: 2 }] }] }, { a: [1, { b: 2 }] })).toBe(true)
    expect(valid({ enum: [1, "a", null] }, "1")).toBe(false)
    expect(
      valid(
        { $ref: "#/$defs/a", $defs: { a: { properties: { next: { $ref: "#/$defs/a" }, x: { type: "number" } } } } },
        { next: { next: { x: 1 } } }
      )
    ).toBe(true)
    expect(
      valid(
        { $ref: "#/$defs/a", $defs: { a: { properties: { next: { $ref: "#/$defs/a" }, x: { type: "number" } } } } },
        { next: { next: { x: "1" } } }
      )
    ).toBe(false)
    expect(valid({ $ref: "#/properties/b", properties: { b: { maxProperties: 1 } } }, { b: {} })).toBe(true)
    expect(valid({ additionalProperties: false, properties: { a: {} } }, { a: 1, "x-weight": 1 })).toBe(false)
    expect(valid({ "x-weight": "mine", type: "object" }, {})).toBe(true)
    expect(valid({ type: "nonsense" }, {})).toBe(false)
  })

  it("a large interface's schema fits the work limit", () => {
    const schema = {
      type: "object",
      properties: named(150, (at) => ({ type: "string", description: "words", minLength: 1, enum: ["a", `b${at}`] })),
      required: ["p1"]
    }
    expect(
      valid(
        schema,
        named(150, () => "a")
      )
    ).toBe(true)
  })
})

describe("CPU-bound validation", () => {
  it.effect("validation runs immediately within its burst, then at its CPU share", () =>
    Effect.gen(function* () {
      let now = 0
      const slept: Array<number> = []
      const real = yield* Clock.Clock
      const clock: Clock.Clock = {
        ...real,
        monotonicTimeNanosUnsafe: () => BigInt(now) * 1_000_000n,
        monotonicTimeNanos: Effect.sync(() => BigInt(now) * 1_000_000n),
        sleep: (duration) =>
          Effect.sync(() => {
            const millis = Number((duration as { readonly value?: { readonly millis?: number } }).value?.millis)
            slept.push(millis)
            now += millis
          })
      }
      const pace = makeCpuThrottle({ share: 0.2, burstMillis: 100 })
      const work = (millis: number) => () => {
        now += millis
        return millis
      }
      yield* Effect.gen(function* () {
        expect(yield* pace(work(90))).toBe(90)
        yield* pace(work(60))
        expect(slept).toEqual([])
        yield* pace(work(10))
        expect(slept).toHaveLength(1)
        now += 1_000_000
        yield* pace(work(50))
        expect(slept).toHaveLength(1)
        const from = now
        const fibers = yield* Effect.forEach(
          many(50, (at) => at),
          () => Effect.forkScoped(pace(work(100)))
        )
        yield* Effect.forEach(fibers, Fiber.join)
        expect((50 * 100) / (now - from)).toBeLessThan(0.25)
      }).pipe(Effect.provideService(Clock.Clock, clock))
    })
  )
})
