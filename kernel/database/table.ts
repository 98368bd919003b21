// Columns of a table, declared once. The declaration gives the SQL that reads them, the SQL and JSON of a batch that
// writes them, the decoder, and the type of a decoded record. JSON has large numbers as text, so that none is rounded.
import { Option } from "effect"

/** How a column's value is read, decoded and encoded. `Stored` is the driver's value of the selected expression. */
export interface Column<A, Stored = any> {
  /** PostgreSQL type. */
  readonly type: string
  /** Selected instead of the column of this name. */
  readonly expression?: string
  /** Cast of the selected value. */
  readonly cast?: string
  readonly decode: (value: Stored) => A
  /** To a member of a JSON record. */
  readonly encode: (value: A) => unknown
}

const same = (type: string) => ({ type, decode: (value: any) => value, encode: (value: any) => value })

export const text: Column<string> = same("text")
export const flag: Column<boolean> = same("boolean")
export const moment: Column<Date> = same("timestamptz")
export const uuid: Column<string> = { ...same("uuid"), cast: "text" }
export const whole: Column<bigint> = { ...same("bigint"), encode: String }
export const json: Column<unknown> = same("jsonb")
/** A whole number within Number's safe range, such as a ledger sequence. */
export const count: Column<number> = { ...same("bigint"), decode: Number }
/** Atomic units, of any size. */
export const units: Column<bigint> = { type: "numeric", cast: "text", decode: BigInt, encode: String }

/** Of double precision, such as a computed age. */
export const float: Column<number> = same("float8")
export const bytes: Column<Uint8Array> = same("bytea")

/** A value that SQL computes, or a column of another name. */
export const computed = <A>(expression: string, column: Column<A>): Column<A> => ({ ...column, expression })

/** Narrows a column to some of its values. */
export const as = <A>(column: Column<any>): Column<A> => column

/** Decodes null as the absent value, and encodes it as null. */
const absentAs =
  <None extends null | undefined>(none: None) =>
  <A>(column: Column<A>): Column<A | None> => ({
    ...column,
    decode: (value) => (value === null ? none : column.decode(value)),
    encode: (value) => (value === none ? null : column.encode(value as A))
  })

export const optional = absentAs(undefined)
export const nullable = absentAs(null)

export const option = <A>(column: Column<A>): Column<Option.Option<A>> => ({
  ...column,
  decode: (value) => (value === null ? Option.none() : Option.some(column.decode(value))),
  encode: (value) => Option.match(value, { onNone: () => null, onSome: column.encode })
})

/** A row of the driver, by column name. */
export type Row = Readonly<Record<string, unknown>>

type Columns = Readonly<Record<string, Column<any>>>
type Value<C> = C extends Column<infer A> ? A : never

/** The record of these columns. A member that may be undefined is optional. */
type Decoded<C extends Columns> = Show<
  { readonly [K in keyof C as undefined extends Value<C[K]> ? never : K]: Value<C[K]> } & {
    readonly [K in keyof C as undefined extends Value<C[K]> ? K : never]?: Value<C[K]>
  }
>
type Show<A> = { readonly [K in keyof A]: A[K] }

/** `payTo` as `pay_to`. */
const columnName = (member: string): string => member.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** Columns under the names of their members, in camel case. */
export const columns = <C extends Columns>(declared: C) => {
  const all = Object.entries(declared).map(([member, column]) => ({ member, name: columnName(member), ...column }))
  return {
    /** Comma-separated names, for `insert`. */
    names: all.map(({ name }) => name).join(", "),
    /** The select list. */
    selected: all
      .map(({ cast, expression, name }) => {
        const value = cast === undefined ? (expression ?? name) : `(${expression ?? name})::${cast}`
        return value === name ? name : `${value} as ${name}`
      })
      .join(", "),
    /** Names with types, for `jsonb_to_recordset`. */
    typed: all.map(({ name, type }) => `${name} ${type}`).join(", "),
    decode: (row: Row): Decoded<C> =>
      Object.fromEntries(all.map(({ decode, member, name }) => [member, decode(row[name])])) as Decoded<C>,
    encode: (record: Decoded<C>): Row =>
      Object.fromEntries(all.map(({ encode, member, name }) => [name, encode((record as Row)[member])]))
  }
}
