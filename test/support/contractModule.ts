// The parts of a contract's module in bytes, for contracts that tests write in WebAssembly instructions.
export type Instructions = ReadonlyArray<number>

export const leb = (value: number): Instructions => (value < 128 ? [value] : [(value & 127) | 128, ...leb(value >>> 7)])

/** A signed LEB128 number of up to 64 bits. */
export const sleb = (value: bigint): Instructions => {
  const low = Number(value & 127n)
  const rest = value >> 7n
  return (rest === 0n && low < 64) || (rest === -1n && low >= 64) ? [low] : [low | 128, ...sleb(rest)]
}

export const sized = (content: Instructions): Instructions => [...leb(content.length), ...content]
export const text = (value: string): Instructions => sized([...new TextEncoder().encode(value)])
export const section = (id: number, ...items: ReadonlyArray<Instructions>): Instructions => [
  id,
  ...sized([...leb(items.length), ...items.flat()])
]

/** A host value that is an unsigned 32-bit number. */
export const u32Word = (value: number): bigint => (BigInt(value) << 32n) | 4n
export const constant = (word: bigint): Instructions => [0x42, ...sleb(word)]

/** The section with the protocol of the host that a contract is made for. */
export const environment: Instructions = [
  0,
  ...sized([...text("contractenvmetav0"), ...[0, 0, 0, 0, 0, 0, 0, 26, 0, 0, 0, 0]])
]
