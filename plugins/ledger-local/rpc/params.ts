// Reads a method's parameters: an object, `{}` or nothing; each field of its type. A wrong one is refused with the real
// RPC's code before any other check, in a message with the field's name and its accepted values.
import { invalidParams } from "./RpcError.ts"

export type Params = Readonly<Record<string, unknown>>

export const paramsOf = (value: unknown): Params => {
  if (value === undefined || value === null) return {}
  if (typeof value !== "object" || Array.isArray(value))
    throw invalidParams("invalid parameters: an object is required")
  return value as Params
}

interface Kind<A> {
  readonly is: (value: unknown) => value is A
  readonly what: string
}

const read = <A>(params: Params, name: string, kind: Kind<A>): A | undefined => {
  const value = params[name]
  if (value === undefined || value === null) return undefined
  if (!kind.is(value)) throw invalidParams(`invalid parameters: ${name} is ${kind.what}`)
  return value
}

const COUNT_MAX = 0xffff_ffff
const textKind: Kind<string> = { is: (value) => typeof value === "string", what: "a text" }
const countKind: Kind<number> = {
  is: (value): value is number => Number.isInteger(value) && Number(value) >= 0 && Number(value) <= COUNT_MAX,
  what: `a whole number from 0 to ${COUNT_MAX}`
}
const flagKind: Kind<boolean> = { is: (value) => typeof value === "boolean", what: "true or false" }
const listKind: Kind<ReadonlyArray<unknown>> = { is: (value) => Array.isArray(value), what: "a list" }
const objectKind: Kind<Params> = {
  is: (value): value is Params => typeof value === "object" && value !== null && !Array.isArray(value),
  what: "an object"
}

export const text = (params: Params, name: string): string => read(params, name, textKind) ?? ""
export const count = (params: Params, name: string): number => read(params, name, countKind) ?? 0
export const flag = (params: Params, name: string): boolean => read(params, name, flagKind) ?? false
export const list = (params: Params, name: string): ReadonlyArray<unknown> => read(params, name, listKind) ?? []
export const object = (params: Params, name: string): Params => read(params, name, objectKind) ?? {}

/** The complaint about an unknown `xdrFormat`, or nothing. */
export const formatProblem = (params: Params): string | undefined => {
  const format = text(params, "xdrFormat")
  if (format === "" || format === "base64" || format === "json") return undefined
  return `got '${format}': expected base64, json for optional 'xdrFormat'`
}

/** Refuses an unknown `xdrFormat`. */
export const checkFormat = (params: Params): void => {
  const problem = formatProblem(params)
  if (problem !== undefined) throw invalidParams(problem)
}

interface Page {
  readonly cursor: string
  readonly limit: number
}

export const page = (params: Params, limitDefault: number, limitMax: number): Page => {
  const pagination = object(params, "pagination")
  const limit = count(pagination, "limit")
  if (limit > limitMax) throw invalidParams(`limit must not exceed ${limitMax}`)
  return { cursor: text(pagination, "cursor"), limit: limit === 0 ? limitDefault : limit }
}
