// Flags of an example that is run from a terminal. `--help` prints the usage and does nothing else; an unknown flag or
// an extra argument is refused before anything happens, so that a mistyped one never makes a payment.
import { parseArgs } from "node:util"

type Options = Readonly<Record<string, { readonly type: "boolean" | "string" }>>

type Flags<O extends Options> = {
  readonly [K in keyof O]?: O[K]["type"] extends "boolean" ? boolean : string
}

export interface Read<O extends Options> {
  readonly flags: Flags<O>
  readonly words: ReadonlyArray<string>
  /** Reports an error on stderr and exits with status 1. */
  readonly refuse: (sentence: string) => never
}

/**
 * Reads the process's arguments. `words`: how many positional arguments are allowed, default none. `verified`: the
 * command line runs the example and has validated the flags already.
 */
export const readFlags = <O extends Options>(
  usage: string,
  options: O,
  { verified = false, words = 0 }: { readonly verified?: boolean; readonly words?: number } = {}
): Read<O> => {
  const name = usage.split(" ")[0]
  const refuse = (sentence: string): never => {
    console.error(`${name}: ${sentence} (see --help)`)
    process.exit(1)
  }
  try {
    const read = parseArgs({
      args: process.argv.slice(2),
      options: { ...options, help: { type: "boolean", short: "h" } },
      allowPositionals: verified || words > 0,
      strict: !verified
    })
    if ("help" in read.values) {
      console.log(usage)
      process.exit(0)
    }
    if (!verified && read.positionals.length > words) refuse(`unexpected argument ${read.positionals[words]}`)
    return { flags: read.values as Flags<O>, words: read.positionals, refuse }
  } catch (error) {
    return refuse((error as Error).message.split(". ")[0]!)
  }
}
