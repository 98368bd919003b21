import { describe, expect, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { findStringified } from "../../../plugins/mcp-tools/stringified.ts"
import { defineTool } from "../../../plugins/mcp-tools/Tool.ts"

const caller = { principal: "stdio", session: "stdio" }

describe("findStringified", () => {
  const schema = {
    type: "object",
    properties: {
      filter: { type: "object", properties: { inner: { type: ["array", "null"] } } },
      rows: { type: "array", items: { type: "object" } },
      note: { type: "string" },
      any: {},
      either: { type: ["object", "string"] },
      shaped: { properties: { a: {} } },
      left: { anyOf: [{ type: "object" }, { type: "null" }] },
      model: { $ref: "#/$defs/Model" },
      open: { anyOf: [{ type: "object" }, {}] },
      text: { oneOf: [{ $ref: "#/$defs/Model" }, { type: "string" }] },
      loop: { $ref: "#/$defs/Loop" },
      lost: { $ref: "#/$defs/None" }
    },
    $defs: {
      Model: { type: "object", properties: { rows: { allOf: [{ type: "array" }] } } },
      Loop: { anyOf: [{ $ref: "#/$defs/Loop" }] }
    }
  }
  const found = (value: unknown) => findStringified(value, schema, "arguments")?.member

  it.each([
    [{ filter: '{"a":1}' }, "arguments.filter"],
    [{ filter: ' {"a":1}' }, "arguments.filter"],
    [{ filter: JSON.stringify('{"a":1}') }, "arguments.filter"],
    [{ filter: { inner: "[1]" } }, "arguments.filter.inner"],
    [{ rows: "[]" }, "arguments.rows"],
    [{ rows: [{}, "{}"] }, "arguments.rows.1"],
    [{ shaped: "{}" }, "arguments.shaped"],
    [{ left: '{"a":1}' }, "arguments.left"],
    [{ model: "{}" }, "arguments.model"],
    [{ model: { rows: "[]" } }, "arguments.model.rows"],
    ['{"filter":{}}', "arguments"]
  ])("findStringified finds the stringified object in %j", (value, member) => {
    expect(found(value)).toBe(member)
  })

  it("findStringified ends soon for many values and many alternatives", () => {
    const names = Array.from({ length: 62 }, (_, at) => `${"a/".repeat(40)}${at}`)
    const $defs = Object.fromEntries(names.map((name) => [name, { type: "object" }]))
    let read = 0
    const anyOf = names.map((name) => ({
      get $ref() {
        read += 1
        return `#/$defs/${name.replaceAll("/", "~1")}`
      }
    }))
    const many = Array.from({ length: 60_000 }, () => ({}))
    expect(findStringified(many, { $defs, type: "array", items: { anyOf } }, "json")).toBe(undefined)
    // All values with all alternatives would be 3.7 million.
    expect(read).toBeLessThan(200_000)
  })

  const plain = [
    { note: '{"a":1}' },
    { any: "{}" },
    { either: "{}" },
    { filter: "text" },
    { filter: '{"a":' },
    { open: "{}" },
    { text: "{}" },
    { loop: "{}" },
    { lost: "{}" },
    { left: null }
  ]
  it.each(plain.map((value) => [value]))("findStringified ignores %j, a plain string or invalid JSON", (value) => {
    expect(found(value)).toBeUndefined()
  })
})

describe("a tool", () => {
  const runs: Array<unknown> = []
  const tool = defineTool({
    name: "probe",
    title: "Probe",
    description: "",
    annotations: {},
    pays: true,
    input: Schema.Struct({
      json: Schema.optionalKey(Schema.Json.annotate({ description: "Anything." })),
      args: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)),
      text: Schema.optionalKey(Schema.String)
    }),
    output: Schema.Struct({ result: Schema.Json.annotate({ description: "Anything." }) }),
    run: (input) => Effect.sync(() => (runs.push(input), { result: input }))
  })

  it.effect.each(["json", "args"])("an object that a client stringified is refused: %s", (member) =>
    Effect.gen(function* () {
      for (const [text, holds] of [
        ['{"city":"Riga"}', "object"],
        ["[1]", "array"]
      ] as const) {
        const failed = yield* Effect.flip(tool.run({ [member]: text }, caller))
        expect(failed).toMatchObject({
          code: "INVALID_ARGUMENT",
          message: `\`${member}\` is a string that holds a JSON ${holds}: pass the ${holds} itself. Nothing was paid.`
        })
      }
      expect(runs).toEqual([])
    })
  )

  it.effect("a tool accepts every other value unchanged, null and plain strings included", () =>
    Effect.gen(function* () {
      for (const input of [{ json: null }, { json: "Riga" }, { json: "[unclosed" }, { text: '{"a":1}' }, {}])
        expect(yield* tool.run(input, caller)).toEqual({ result: input })
    })
  )

  it.effect("each invalid argument is reported as one entry with its path", () =>
    Effect.gen(function* () {
      const refused = yield* Effect.flip(tool.run({ text: 1, args: 2, more: 3 }, caller))
      if (!("code" in refused)) throw new Error("an input is asked for")
      const { faults: errors } = refused.details as { readonly faults: ReadonlyArray<string> }
      expect([refused.code, errors.length]).toEqual(["INVALID_ARGUMENT", 3])
      for (const member of ["text", "args", "more"])
        expect(errors.filter((error) => error.includes(`["${member}"]`))).toEqual([
          expect.stringMatching(/^[A-Z].* at \["/)
        ])
    })
  )

  it("every schema member names a type, unconstrained ones included", () => {
    const anything = { type: ["object", "array", "string", "number", "boolean", "null"], description: "Anything." }
    expect(tool.inputSchema).toMatchObject({ properties: { json: anything, args: { type: "object" } } })
    expect(tool.outputSchema).toMatchObject({ properties: { result: {}, code: { type: "string" } } })
  })
})
