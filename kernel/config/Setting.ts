// Constructors with which a plugin declares its settings as data: name, unit, default, range and a sentence of
// documentation. A section is a named group of settings with exactly one owner, which declares it in its plugin's
// `settings` (`gather.ts`). Values come from a profile's YAML. An unknown or ill-typed value is refused with its path
// before any port opens.
import { Effect, Schema, SchemaGetter } from "effect"
import { isRange } from "./addressRange.ts"

/** A setting's schema carries its documentation and default as annotations. */
export type Setting<A, I = any> = Schema.Codec<A, I>

interface Doc {
  /** One sentence for the operator. */
  readonly doc: string
  readonly unit?: string
}

const annotated = <A, I>(schema: Schema.Codec<A, I>, options: Doc & { readonly default?: I }): Setting<A, I> =>
  schema.annotate({
    description: options.unit === undefined ? options.doc : `${options.doc} Unit: ${options.unit}.`,
    ...(options.default === undefined ? {} : { default: options.default as any })
  }) as any

const withDefault = <A, I>(
  schema: Schema.Codec<A, I>,
  options: Doc & { readonly default: I }
): Setting<A, I | undefined> =>
  annotated(schema, options).pipe(Schema.withDecodingDefaultKey(Effect.succeed(options.default as any))) as any

interface Range {
  readonly default: number
  readonly min: number
  readonly max: number
  readonly unit?: string
}

const within = (schema: Schema.Codec<number, number>, { max, min, ...options }: Range, doc: string): Setting<number> =>
  withDefault(schema.check(Schema.isBetween({ minimum: min, maximum: max })), { ...options, doc })

/** A whole number within a closed range. */
export const integer = (range: Range, doc: string): Setting<number> => within(Schema.Int, range, doc)

/** A number within a closed range, for weights and shares; never for money. */
export const fraction = (range: Range, doc: string): Setting<number> => within(Schema.Finite, range, doc)

const atomicUnits = /^(0|[1-9][0-9]{0,38})$/
/** More than all XLM, and less than the database's and the ledger's limit of 64 bits. */
const stroopUnits = /^(0|[1-9][0-9]{0,17})$/

const amountValue = (form: RegExp, options: Doc): Schema.Codec<bigint, number | string> =>
  // The written side carries the documentation, since that is what `config schema` prints.
  annotated<number | string, number | string>(
    Schema.Union([Schema.Natural, Schema.String.check(Schema.isPattern(form))]),
    options
  ).pipe(
    Schema.decodeTo(Schema.BigInt, {
      decode: SchemaGetter.transform((value: number | string) => BigInt(value)),
      encode: SchemaGetter.transform((value: bigint) => value.toString())
    })
  ) as any

/** An amount in atomic units: a whole number ≥ 0, written as YAML number or string, read as `bigint`. */
export const amount = (options: Doc & { readonly default: number | string }): Setting<bigint> =>
  withDefault(amountValue(atomicUnits, options), options as any)

/** An amount in stroops, written so; less than 10^18. */
export const stroops = (options: Doc & { readonly default: number | string }): Setting<bigint> =>
  withDefault(amountValue(stroopUnits, options), options as any)

/** Amounts in stroops by name; none by default. */
export const stroopsByName = (options: Doc): Setting<Readonly<Record<string, bigint>>> =>
  table(amountValue(stroopUnits, { doc: "An amount in stroops." }), { ...options, default: {} })

export const flag = (options: Doc & { readonly default: boolean }): Setting<boolean> =>
  withDefault(Schema.Boolean, options)

export const text = (options: Doc & { readonly default: string }): Setting<string> =>
  withDefault(Schema.String, options)

/** A text without a default: absent means absent. */
export const optionalText = (options: Doc): Setting<string | undefined> =>
  Schema.optionalKey(annotated(Schema.String, options)) as any

export const choice = <const L extends ReadonlyArray<string | boolean>>(
  literals: L,
  options: Doc & { readonly default: L[number] }
): Setting<L[number]> => withDefault(Schema.Literals(literals) as any, options)

export const list = <A, I>(
  item: Schema.Codec<A, I>,
  options: Doc & { readonly default: ReadonlyArray<I> }
): Setting<ReadonlyArray<A>> => withDefault(Schema.Array(item) as any, options)

/**
 * In the form that a browser sends: without a path or a trailing slash, and with a port only if it is not the default.
 */
const isOrigin = (page: string): boolean =>
  /^[a-z][a-z0-9+.-]*:\/\/[^\s/?#@*]+$/i.test(page) &&
  (!/^https?:/i.test(page) || (URL.canParse(page) && new URL(page).origin === page.toLowerCase()))

/** Origins of web pages; none by default. */
export const origins = (options: Doc): Setting<ReadonlyArray<string>> =>
  list(
    Schema.String.check(
      Schema.makeFilter(
        (page: string) => isOrigin(page) || "expected an origin such as https://shop.example, without a path"
      )
    ),
    { ...options, default: [] }
  )

/** IP addresses and ranges of them, none by default. A malformed one is refused: it would silently contain nothing. */
export const ranges = (options: Doc): Setting<ReadonlyArray<string>> =>
  list(
    Schema.String.check(
      Schema.makeFilter((text: string) => isRange(text) || "expected an IP address, or a range such as 10.0.0.0/8")
    ),
    { ...options, default: [] }
  )

export const table = <A, I>(
  value: Schema.Codec<A, I>,
  options: Doc & { readonly default: Readonly<Record<string, I>> }
): Setting<Readonly<Record<string, A>>> => withDefault(Schema.Record(Schema.String, value) as any, options)

/** The schema of one entry of a `table` or `list`, its fields being settings. */
export const entry = <F extends Fields>(fields: F): Schema.Codec<ValuesOf<F>, any> =>
  Schema.Struct(fields as any) as any

/** A nested group of settings; absent means all its defaults. */
export const group = <F extends Fields>(fields: F, options: Doc): Setting<ValuesOf<F>> =>
  withDefault(entry(fields), { ...options, default: {} as any }) as any

export type Fields = Readonly<Record<string, Setting<any>>>
export type ValuesOf<F extends Fields> = { readonly [K in keyof F]: F[K] extends Setting<infer A> ? A : never }

export interface Section<out A> {
  /** The top-level key in a profile. */
  readonly name: string
  readonly schema: Schema.Codec<A, any>
  /**
   * Objections of its values to serving pubnet, as sentences that name the setting; checked whether its plugin is
   * enabled or not (`settlement/PubnetGate.ts`).
   */
  readonly pubnetIssues?: (values: any) => ReadonlyArray<string>
}

/** Defines a section with several settings below one key. */
export const section = <F extends Fields>(
  name: string,
  doc: string,
  fields: F,
  pubnetIssues: (values: ValuesOf<F>) => ReadonlyArray<string> = () => []
): Section<ValuesOf<F>> => ({ name, schema: group(fields, { doc }) as any, pubnetIssues: pubnetIssues })

export const scalar = <A>(name: string, setting: Setting<A>): Section<A> => ({ name, schema: setting as any })

type Camel<S extends string> = S extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : S
type MemberName<S extends string> = S extends `max_${infer Rest}`
  ? MemberName<`${Rest}_max`>
  : S extends `${infer Rest}_ms`
    ? MemberName<`${Rest}_millis`>
    : Camel<S>

/** The values of a section as members: `max_json_depth` as `jsonDepthMax`, `retry_first_ms` as `retryFirstMillis`. */
export type Members<V> = { readonly [K in keyof V & string as MemberName<K>]: V[K] }

const memberName = (name: string): string =>
  name
    .replace(/^max_(.*)$/, "$1_max")
    .replace(/_ms$/, "_millis")
    .replace(/_(.)/g, (_, letter: string) => letter.toUpperCase())

export const membersOf = <V extends object>(values: V): Members<V> =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [memberName(name), value])) as Members<V>

export type MembersOf<S> = S extends Section<infer V> ? Members<V> : never
