import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { describe } from "vitest"
import { isPublicAddress } from "../../../kernel/http/addresses.ts"
import { isLocalName } from "../../../kernel/http/localNames.ts"
import { type FetchPolicy, safeFetch } from "../../../kernel/http/safeFetch.ts"
import { Outbound, OutboundFailed } from "../../../kernel/platform/Outbound.ts"

const policy: FetchPolicy = {
  allowLocal: false,
  allowPlain: false,
  timeoutMillis: 1_000,
  bytesMax: 1_000,
  redirectsMax: 2
}

/** A network with these names, with scripted redirects; it records every dial. */
const network = (names: Record<string, ReadonlyArray<string>>, redirects: Record<string, string> = {}) => {
  const dialed: Array<string> = []
  const outbound = Outbound.of({
    resolve: (host) =>
      names[host] === undefined
        ? Effect.fail(new OutboundFailed({ reason: "unresolved" }))
        : Effect.succeed(names[host]),
    texts: () => Effect.die("must not be called"),
    send: ({ address, url }) =>
      Effect.sync(() => {
        dialed.push(`${url} at ${address}`)
        const location = redirects[url]
        return location === undefined
          ? { status: 200, headers: {}, body: new Uint8Array() }
          : { status: 302, headers: { location }, body: new Uint8Array() }
      })
  })
  const fetch = (url: string, change: Partial<FetchPolicy> = {}) =>
    Effect.match(
      safeFetch(new URL(url), { method: "GET", headers: {} }, { ...policy, ...change }).pipe(
        Effect.provideService(Outbound, outbound)
      ),
      {
        onFailure: ({ reason }) => reason as string,
        onSuccess: ({ status }) => String(status)
      }
    )
  return { dialed, fetch }
}

describe("safeFetch", () => {
  it.effect("pins a host name to the checked address on each request [S235]", () =>
    Effect.gen(function* () {
      const { dialed, fetch } = network({ "a.example.com": ["93.184.216.34"] })
      expect(yield* fetch("https://a.example.com/x")).toBe("200")
      expect(dialed).toEqual(["https://a.example.com/x at 93.184.216.34"])
      // A name that resolves differently the second time is checked again: nothing is cached.
      const names = { "b.example.com": ["93.184.216.34"] }
      const rebinding = network(names)
      expect(yield* rebinding.fetch("https://b.example.com/x")).toBe("200")
      names["b.example.com"] = ["10.0.0.1"]
      expect(yield* rebinding.fetch("https://b.example.com/x")).toBe("blocked")
      names["b.example.com"] = ["93.184.216.35"]
      expect(yield* rebinding.fetch("https://b.example.com/y")).toBe("200")
      expect(rebinding.dialed).toEqual([
        "https://b.example.com/x at 93.184.216.34",
        "https://b.example.com/y at 93.184.216.35"
      ])
    })
  )

  it.effect("dials nothing if any resolved or literal address is not public", () =>
    Effect.gen(function* () {
      const { dialed, fetch } = network({
        "mixed.example.com": ["93.184.216.34", "10.0.0.1"],
        "inside.example.com": ["::ffff:127.0.0.1"]
      })
      for (const url of [
        "https://mixed.example.com/",
        "https://inside.example.com/",
        "https://127.0.0.1/",
        "https://2130706433/",
        "https://[::1]/",
        "https://[64:ff9b::7f00:1]/",
        "https://localhost./",
        "https://user@a.example.com/",
        "https://a.example.com:22/"
      ])
        expect(yield* fetch(url), url).toBe("blocked")
      expect(yield* fetch("http://a.example.com/")).toBe("insecure")
      expect(yield* fetch("ftp://a.example.com/", { allowPlain: true })).toBe("insecure")
      expect(yield* fetch("https://nowhere.example.com/")).toBe("unresolved")
      expect(dialed).toEqual([])
    })
  )

  it.effect("never dials cloud metadata addresses, regardless of settings", () =>
    Effect.gen(function* () {
      const { dialed, fetch } = network({
        "metadata.google.internal": ["169.254.169.254"],
        "rebound.example.com": ["10.0.0.1", "fd00:ec2::254"],
        "printer.local": ["10.0.0.2"]
      })
      const open = { allowLocal: true, allowPlain: true }
      for (const url of [
        "http://169.254.169.254/latest/meta-data/",
        "http://2852039166/",
        "http://[::ffff:a9fe:a9fe]/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://metadata.google.internal/",
        "http://rebound.example.com/"
      ])
        expect(yield* fetch(url, open), url).toBe("blocked")
      // An address of the public range that only instances can reach.
      expect(yield* fetch("https://168.63.129.16/")).toBe("blocked")
      expect(yield* fetch("http://printer.local/", open)).toBe("200")
      expect(yield* fetch("http://127.0.0.1:4022/", open)).toBe("200")
      expect(dialed).toEqual(["http://printer.local/ at 10.0.0.2", "http://127.0.0.1:4022/ at 127.0.0.1"])
    })
  )

  it.effect("follows a limited number of redirects within the origin", () =>
    Effect.gen(function* () {
      const names = { "a.example.com": ["93.184.216.34"], "b.example.com": ["93.184.216.35"] }
      const { dialed, fetch } = network(names, {
        "https://a.example.com/1": "/2",
        "https://a.example.com/2": "https://a.example.com/3",
        "https://a.example.com/out": "https://b.example.com/",
        "https://a.example.com/in": "http://169.254.169.254/latest",
        "https://a.example.com/loop": "/loop"
      })
      expect(yield* fetch("https://a.example.com/1")).toBe("200")
      expect(yield* fetch("https://a.example.com/out")).toBe("redirected")
      expect(yield* fetch("https://a.example.com/in")).toBe("redirected")
      expect(yield* fetch("https://a.example.com/loop")).toBe("redirected")
      expect(dialed.every((line) => line.startsWith("https://a.example.com/") && line.endsWith("93.184.216.34"))).toBe(
        true
      )
    })
  )
})

describe("addresses", () => {
  it.each([
    "0.0.0.0",
    "10.0.0.1",
    "100.127.255.255",
    "127.0.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "192.0.0.170",
    "192.168.0.1",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:808:808::1",
    "3fff::1",
    "fc00::1",
    "fe80::1",
    "fec0::1",
    "ff02::1",
    "x"
  ])("%s is not public", (address) => expect(isPublicAddress(address)).toBe(false))

  it.each(["8.8.8.8", "93.184.216.34", "172.32.0.1", "2606:2800:220:1:248:1893:25c8:1946"])("%s is public", (address) =>
    expect(isPublicAddress(address)).toBe(true)
  )

  it("distinguishes private from public host names", () => {
    for (const name of [
      "localhost",
      "localhost.",
      "a.localhost",
      "x.local",
      "x.internal",
      "nas.home",
      "intranet",
      "1.0.0.127.in-addr.arpa",
      "a..com"
    ])
      expect(isLocalName(name), name).toBe(true)
    for (const name of ["example.com", "localhost.example.com", "local.example.org.", "xn--bcher-kva.example"])
      expect(isLocalName(name), name).toBe(false)
  })
})
