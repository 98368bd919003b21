// Generates the typed client's table of operations and their types from the document at /openapi.json. Pure: the same
// document gives the same two files, which a test compares with the stored ones.

interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly parameters: ReadonlyArray<{
    readonly name: string
    readonly in: string
    readonly required: boolean
    readonly schema: Schema
    readonly description?: string
  }>
  readonly requestBody?: { readonly content: Content }
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>
}
type Content = Readonly<Record<string, { readonly schema: Schema }>>
type Schema = any

export interface OpenApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

const isName = (text: string): boolean => /^[A-Za-z_$][\w$]*$/.test(text)
const keyOf = (name: string): string => (isName(name) ? name : JSON.stringify(name))
const indented = (text: string): string => text.replaceAll("\n", "\n  ")

/** A comment, on one line if it fits. */
const comment = (text: string): string => {
  const lines = [""]
  for (const word of text.replaceAll("*/", "").split(" ")) {
    const line = lines.at(-1)!
    if (line.length + word.length > 90) lines.push(word)
    else lines[lines.length - 1] = line === "" ? word : `${line} ${word}`
  }
  return lines.length === 1 ? `/** ${lines[0]} */\n` : `/**\n * ${lines.join("\n * ")}\n */\n`
}

const union = (types: ReadonlyArray<string>): string =>
  types.join(" | ").length > 70 ? `\n  | ${types.join("\n  | ")}` : types.join(" | ")

const objectType = ({ additionalProperties, properties = {}, required = [] }: Schema): string => {
  const fields = Object.entries<Schema>(properties).map(([name, schema]) => {
    const description = schema.description === undefined ? "" : comment(schema.description)
    return `${description}readonly ${keyOf(name)}${required.includes(name) ? "" : "?"}: ${typeOf(schema)}`
  })
  const others = additionalProperties === undefined || additionalProperties === false ? undefined : additionalProperties
  if (fields.length === 0)
    return `Readonly<Record<string, ${others === undefined || others === true ? "unknown" : typeOf(others)}>>`
  const own = `{\n  ${indented(fields.join("\n"))}\n}`
  return others === undefined || others === true ? own : `${own} & Readonly<Record<string, ${typeOf(others)}>>`
}

/** The TypeScript type of a JSON Schema; `unknown` for unsupported schemas. */
export const typeOf = (schema: Schema): string => {
  if (schema.$ref !== undefined) return String(schema.$ref).split("/").at(-1)!
  const one = schema.anyOf ?? schema.oneOf
  if (one !== undefined) return [...new Set(one.map(typeOf) as ReadonlyArray<string>)].join(" | ")
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum !== undefined) return union(schema.enum.map((value: unknown) => JSON.stringify(value)))
  if (Array.isArray(schema.type)) return schema.type.map((type: string) => typeOf({ ...schema, type })).join(" | ")
  switch (schema.type) {
    case "string":
      return "string"
    case "integer":
    case "number":
      return "number"
    case "boolean":
      return "boolean"
    case "null":
      return "null"
    case "array":
      return schema.items === undefined || schema.items === false
        ? "ReadonlyArray<unknown>"
        : `ReadonlyArray<${typeOf(schema.items)}>`
    case "object":
      return objectType(schema)
    default:
      return schema.allOf?.length > 0 ? schema.allOf.map(typeOf).join(" & ") : "unknown"
  }
}

const placeOf = { query: "query", path: "path", header: "headers" } as const

/** A type of these members, each on its own line. */
const block = (members: ReadonlyArray<string>): string => `{\n  ${indented(members.join("\n"))}\n}`

/** The single argument of an operation: its parameters by place, and its body; undefined without any. */
const argumentOf = ({ parameters, requestBody }: Operation) => {
  const members: Array<string> = []
  let isRequired = requestBody !== undefined
  for (const [place, name] of Object.entries(placeOf)) {
    const there = parameters.filter((parameter) => parameter.in === place)
    if (there.length === 0) continue
    const isNeeded = there.some(({ required }) => required)
    isRequired ||= isNeeded
    const fields = there.map(
      (parameter) =>
        `readonly ${keyOf(parameter.name)}${parameter.required ? ":" : "?: undefined |"} ${typeOf(parameter.schema)}`
    )
    members.push(`readonly ${name}${isNeeded ? "" : "?"}: ${block(fields)}`)
  }
  const [body] = Object.values(requestBody?.content ?? {})
  if (body !== undefined) members.push(`readonly body: ${typeOf(body.schema)}`)
  return members.length === 0 ? undefined : { type: block(members), isRequired }
}

const answerOf = ({ responses }: Operation): string => {
  const good = Object.entries(responses).filter(([status]) => /^2/.test(status))
  const types = good.map(([, { content }]) => {
    const [one] = Object.values(content ?? {})
    return one === undefined ? "undefined" : typeOf(one.schema)
  })
  return [...new Set(types)].join(" | ") || "unknown"
}

/** An endless answer is read by a separate function. */
const isStream = ({ responses }: Operation): boolean => responses["200"]?.content?.["text/event-stream"] !== undefined

const operationsOf = ({ paths }: OpenApiDocument) =>
  Object.entries(paths)
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation }))
    )
    .toSorted((a, b) => (a.operation.operationId < b.operation.operationId ? -1 : 1))

const eventType = `/** One event of a settlement. */
export interface SettlementEvent {
  readonly id: string | undefined
  readonly event: string
  readonly data: Settlement
}`

const follow = `/** Settlements as they end, resumed from the last one given; ends with \`signal\`. */
readonly followSettlements: (options?: {
  readonly after?: string
  readonly signal?: AbortSignal
  readonly pauseMillis?: number
}) => AsyncGenerator<SettlementEvent>`

const head = (what: string) => `// ${what}, generated by \`npm run client\` from /openapi.json. Not edited by hand.\n`

const declared = `/** The facilitator answered, and not with a success. */
export declare class AnswerRefused extends Error {
  readonly operation: string
  readonly status: number
  readonly body: unknown
  readonly retryAfterSeconds: number | undefined
}

/** One function for each operation of a facilitator, and \`followSettlements\`. */
export declare const makeClient: (options: {
  readonly url: string
  readonly key?: string
  readonly fetch?: typeof fetch
}) => Client`

/** The contents of `operations.mjs` and `types.ts`. */
export const generate = (document: OpenApiDocument): { readonly table: string; readonly types: string } => {
  const operations = operationsOf(document)
  const rows = operations.map(({ method, operation, path }) => {
    const row = [method, path, ...(isStream(operation) ? ["stream"] : [])]
    return `  ${operation.operationId}: [${row.map((word) => JSON.stringify(word)).join(", ")}]`
  })
  const schemas = Object.entries(document.components.schemas).map(
    ([name, schema]) => `/** As /openapi.json has it. */\nexport type ${name} = ${typeOf(schema)}\n`
  )
  const single = operations.filter(({ operation }) => !isStream(operation))
  const calls = single.map(({ operation }) => {
    const given = argumentOf(operation)
    const parameter = given === undefined ? "given?: undefined" : `given${given.isRequired ? "" : "?"}: ${given.type}`
    const answer = `Promise<${answerOf(operation)}>`
    const signature = `(${parameter}, signal?: AbortSignal) => ${answer}`
    return `${comment(operation.summary)}readonly ${operation.operationId}: ${signature}`
  })
  return {
    table: `${head("Method and path of each operation")}export const operations = {\n${rows.join(",\n")}\n}\n`,
    types: [
      `${head("The types of the client")}${schemas.join("\n")}`.trimEnd(),
      eventType,
      `/** Every operation. */\nexport interface Client {\n  ${indented([...calls, follow].join("\n"))}\n}`,
      `${declared}\n`
    ]
      .join("\n\n")
      .replace(/ +$/gmu, "")
  }
}
