// Reading a method's parameters: an object, `{}` or nothing; each field of the kind it must be. A wrong one is refused
// as the real RPC refuses it, before anything else is looked at.
import { invalidParams } from "./RpcError.ts"

export type Params = Readonly<Record<string, unknown>>

export const paramsOf = (value: unknown): Params => {
  if (value === undefined || value === null) return {}
  if (typeof value !== "object" || Array.isArray(value)) throw invalidParams("invalid parameters")
  return value as Params
}

const read = <A>(params: Params, name: string, is: (value: unknown) => value is A): A | undefined => {
  const value = params[name]
  if (value === undefined || value === null) return undefined
  if (!is(value)) throw invalidParams("invalid parameters")
  return value
}

const isText = (value: unknown): value is string => typeof value === "string"
const isCount = (value: unknown): value is number =>
  typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= 0xffff_ffff
const isFlag = (value: unknown): value is boolean => typeof value === "boolean"
const isList = (value: unknown): value is ReadonlyArray<unknown> => Array.isArray(value)
const isObject = (value: unknown): value is Params =>
  typeof value === "object" && value !== null && !Array.isArray(value)

export const text = (params: Params, name: string): string => read(params, name, isText) ?? ""
export const count = (params: Params, name: string): number => read(params, name, isCount) ?? 0
export const flag = (params: Params, name: string): boolean => read(params, name, isFlag) ?? false
export const list = (params: Params, name: string): ReadonlyArray<unknown> => read(params, name, isList) ?? []
export const object = (params: Params, name: string): Params => read(params, name, isObject) ?? {}

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

export interface Page {
  readonly cursor: string
  readonly limit: number
}

export const page = (params: Params, limitDefault: number, limitMax: number): Page => {
  const pagination = object(params, "pagination")
  const limit = count(pagination, "limit")
  if (limit > limitMax) throw invalidParams(`limit must not exceed ${limitMax}`)
  return { cursor: text(pagination, "cursor"), limit: limit === 0 ? limitDefault : limit }
}
