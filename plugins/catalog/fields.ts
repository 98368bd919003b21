// An unvalidated JSON object from a caller or an origin.
import { Predicate } from "effect"

export type Fields = Readonly<Record<string, unknown>>

export const isFields = (value: unknown): value is Fields => Predicate.isObject(value)
