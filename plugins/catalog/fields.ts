// A JSON object of which nothing is known yet, as callers and origins send them.
import { Predicate } from "effect"

export type Fields = Readonly<Record<string, unknown>>

export const isFields = (value: unknown): value is Fields => Predicate.isObject(value)
