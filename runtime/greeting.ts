// What `start` prints when everything answers: what runs where, and what to try next.
import { Console, type Context, Effect } from "effect"
import type { Profile } from "./profile.ts"

export interface GreetingOptions {
  /** None when the process listens nowhere. */
  readonly address: { readonly host: string; readonly port: number } | undefined
  readonly profile: Profile
  readonly services: Context.Context<never>
  readonly stateFolder: string
}

const portOf = (profile: Profile, section: string, key: string, otherwise: number): number => {
  const table = profile.tree[section]
  const value = typeof table === "object" && table !== null ? (table as Record<string, unknown>)[key] : undefined
  return typeof value === "number" ? value : otherwise
}

export const greeting = ({ address, profile, stateFolder }: GreetingOptions): Effect.Effect<void> => {
  if (profile.plugins.includes("mcp-tools")) {
    const where = address === undefined ? "stdin and stdout" : `http://${address.host}:${address.port}/mcp`
    return Console.error(`Tollkeeper's agent tools are ready (profile ${profile.name}) at ${where}`)
  }
  if (address === undefined) return Effect.void
  const shown = address.host === "0.0.0.0" ? "127.0.0.1" : address.host
  const lines = [
    "",
    `Tollkeeper is ready (profile ${profile.name}; state in ${stateFolder})`,
    `  facilitator   http://${shown}:${address.port}`
  ]
  if (profile.plugins.includes("ledger-local")) {
    const http = portOf(profile, "local_ledger", "port", 8_000)
    lines.push(
      `  ledger        http://127.0.0.1:${http}  (RPC, /friendbot?addr=G…&usdc=100)`,
      `                https://127.0.0.1:${portOf(profile, "local_ledger", "https_port", 8_443)}`
    )
  }
  if (profile.plugins.includes("x402-exact")) lines.push("", "Try it, in another terminal:  npm run pay")
  return Console.log([...lines, ""].join("\n"))
}
