// Compares the kernel's XDR reader with the SDK's: the same values of every type that the kernel reads, and the same
// bytes refused, over random values of the SDK's own schemas that are then corrupted. A failure prints its seed.
import { describe, expect, it } from "@effect/vitest"
import { xdr } from "@stellar/stellar-sdk/base"
import { bytesOfBase64 } from "../../../kernel/stellar/base64.ts"
import { bytesRead, readXdr } from "../../../kernel/stellar/readXdr.ts"

/** The types that the kernel reads. */
const types = {
  TransactionEnvelope: xdr.TransactionEnvelope.schema,
  SorobanAuthorizationEntry: xdr.SorobanAuthorizationEntry.schema,
  SorobanTransactionData: xdr.SorobanTransactionData.schema,
  DiagnosticEvent: xdr.DiagnosticEvent.schema,
  TransactionResult: xdr.TransactionResult.schema,
  TransactionMeta: xdr.TransactionMeta.schema,
  LedgerEntryData: xdr.LedgerEntryData.schema,
  LedgerHeader: xdr.LedgerHeader.schema,
  ScVal: xdr.ScVal.schema
} as const

type Codec = {
  readonly decode: (bytes: Uint8Array, options?: object) => unknown
  readonly encode: (value: never) => Uint8Array
}

const seeds = Array.from({ length: 60 }, (_, at) => at + 1)

/** Numbers from 0 to below a bound, the same ones for the same seed. */
const dice = (seed: number) => {
  let state = (seed * 2_654_435_761) >>> 0
  return (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

type Roll = ReturnType<typeof dice>

const bytesOf = (roll: Roll, length: number) => Uint8Array.from({ length }, () => roll(256))

const hyper = (roll: Roll): bigint =>
  [0n, 1n, BigInt(roll(1e9)), (BigInt(roll(2 ** 32)) << 31n) + BigInt(roll(2 ** 31))][roll(4)]!

const pick = <A>(roll: Roll, from: ReadonlyArray<A>): A => from[roll(from.length)]!

/** A value of a schema; deeper than a few levels, the shortest one. */
const valueOf = (roll: Roll, schema: any, depth = 0): unknown => {
  const isDeep = depth > 9
  switch (schema.kind) {
    case "void":
      return undefined
    case "bool":
      return roll(2) === 1
    case "int32":
      return roll(2 ** 32) - 2 ** 31
    case "uint32":
      return roll(2 ** 32)
    case "int64":
      return roll(2) === 0 ? hyper(roll) : -hyper(roll)
    case "uint64":
      return hyper(roll)
    case "enum":
      return pick(roll, [...schema.nameByValue.keys()])
    case "opaque":
      return bytesOf(roll, schema.length)
    case "varOpaque":
    case "string":
      return bytesOf(roll, Math.min(schema.maxLength, roll(9)))
    default:
      return nestedOf(roll, schema, depth + 1, isDeep)
  }
}

const nestedOf = (roll: Roll, schema: any, depth: number, isDeep: boolean): unknown => {
  const inside = (one: any) => valueOf(roll, one, depth)
  switch (schema.kind) {
    case "array":
      return Array.from({ length: isDeep ? 0 : Math.min(schema.maxLength, roll(3)) }, () => inside(schema.element))
    case "fixedArray":
      return Array.from({ length: schema.length }, () => inside(schema.element))
    case "option":
      return isDeep || roll(2) === 0 ? null : inside(schema.element)
    case "lazy":
      return inside(schema.getSchema())
    case "struct":
      return Object.fromEntries(schema.entries.map(([name, field]: [string, unknown]) => [name, inside(field)]))
    case "union": {
      const { arm, discriminant } = pick(roll, isDeep ? schema.cases.slice(0, 1) : schema.cases) as any
      return {
        [schema.switchKey]: discriminant,
        ...(arm.kind === "field" ? { [arm.name]: inside(arm.schema) } : {})
      }
    }
    default:
      throw new Error(`no value of kind ${schema.kind}`)
  }
}

/** A reader's result for bytes. */
const reported = (read: () => unknown) => {
  try {
    return { value: read() }
  } catch {
    return "refused"
  }
}

/** Corrupted bytes of a value: a byte changed, some missing, some more, others swapped. */
const spoilt = (roll: Roll, bytes: Uint8Array): Uint8Array => {
  const at = roll(Math.max(1, bytes.length))
  switch (roll(5)) {
    case 0:
      return bytes.slice(0, at)
    case 1:
      return Uint8Array.from([...bytes, ...bytesOf(roll, 1 + roll(8))])
    case 2:
      return Uint8Array.from([...bytes.slice(0, at), ...bytes.slice(at + 4)])
    default:
      return bytes.map((byte, i) => (i === at ? (byte + 1 + roll(3)) & 0xff : byte))
  }
}

/** One value of a type, as it was written, and corrupted. */
const compare = (codec: Codec & { readonly kind: string }, seed: number) => {
  const roll = dice(seed)
  const bytes = codec.encode(valueOf(roll, codec) as never)
  expect(readXdr(codec, bytes), `seed ${seed}`).toEqual(codec.decode(bytes))
  for (let i = 0; i < 20; i++) {
    const sent = spoilt(roll, bytes)
    const ours = reported(() => readXdr(codec, sent))
    expect(ours, `seed ${seed}, spoilt ${i}`).toEqual(reported(() => codec.decode(sent)))
    // Accepted bytes are the only encoding of their value.
    if (ours !== "refused") expect(codec.encode((ours as { value: never }).value), `seed ${seed}`).toEqual(sent)
  }
}

it.each(Object.entries(types) as unknown as ReadonlyArray<[string, Codec & { kind: string }]>)(
  "%s is read, and refused, as the SDK does",
  (_name, codec) => {
    for (const seed of seeds) compare(codec, seed)
  }
)

describe("readXdr", () => {
  it("refuses excessive nesting exactly where the SDK does", () => {
    const nested = (levels: number): Uint8Array => {
      let value: any = { type: 1 }
      for (let i = 0; i < levels; i++) value = { type: 16, vec: [value] }
      return xdr.ScVal.schema.encode(value)
    }
    const { schema } = xdr.ScVal
    const found = Array.from({ length: 40 }, (_, levels) => {
      const bytes = nested(levels)
      const [ours, theirs] = [
        reported(() => readXdr(schema, bytes, 100)),
        reported(() => schema.decode(bytes, { maxDepth: 100 }))
      ].map((one) => one === "refused")
      expect(ours).toBe(theirs)
      return ours
    })
    expect(new Set(found)).toEqual(new Set([true, false]))
  })

  it("refuses a length above its type's bound", () => {
    const symbol = (length: number) => {
      const bytes = new Uint8Array(8 + Math.ceil(length / 4) * 4)
      bytes.set([0, 0, 0, 15, 0, 0, 0, length])
      return bytes.fill(97, 8, 8 + length)
    }
    const { schema } = xdr.ScVal
    expect(readXdr(schema, symbol(32))).toEqual(schema.decode(symbol(32)))
    for (const read of [() => readXdr(schema, symbol(33)), () => schema.decode(symbol(33))])
      expect(reported(read)).toBe("refused")
  })

  it("allocates nothing for a length beyond the input", () => {
    const bytes = new Uint8Array(16)
    // A vector of four thousand million values.
    bytes.set([0, 0, 0, 16, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff])
    expect(reported(() => readXdr(xdr.ScVal.schema, bytes))).toBe("refused")
  })

  it("keeps the raw bytes of calls, operations and invocations", () => {
    const { schema } = xdr.SorobanAuthorizationEntry
    let kept = 0
    for (const seed of seeds) {
      const bytes = schema.encode(valueOf(dice(seed), schema) as never)
      const { rootInvocation } = readXdr(schema, bytes)
      expect(bytesRead(rootInvocation)).toEqual(xdr.SorobanAuthorizedInvocation.schema.encode(rootInvocation))
      expect(bytesRead({ ...rootInvocation })).toBeUndefined()
      if (rootInvocation.function.type !== 0) continue
      const { contractFn } = rootInvocation.function
      expect(bytesRead(contractFn)).toEqual(xdr.InvokeContractArgs.schema.encode(contractFn))
      kept += 1
    }
    expect(kept).toBeGreaterThan(0)
  })
})

describe("bytesOfBase64", () => {
  it("decodes only canonical base64", () => {
    const roll = dice(7)
    for (let length = 0; length < 70; length++) {
      const bytes = bytesOf(roll, length)
      const text = Buffer.from(bytes).toString("base64")
      expect(bytesOfBase64(text)).toEqual(bytes)
      for (const other of [`${text}=`, text.slice(0, -1), ` ${text}`, `${text}\n`, `${text}AAA`, `${text}AAA\u00c1`])
        if (other !== text) expect(bytesOfBase64(other)).toBeUndefined()
    }
    // Bits that no byte uses, padding within, another alphabet, and letters beyond it.
    for (const text of [
      "AB==",
      "AAB=",
      "A===",
      "====",
      "AA==AAAA",
      "AA=A",
      "-_-_",
      "AAA\u0141",
      "\u0141AAA",
      "AA\u00ff="
    ])
      expect(bytesOfBase64(text)).toBeUndefined()
  })
})
