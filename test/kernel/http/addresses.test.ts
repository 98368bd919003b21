// Addresses of callers: both families, every way of writing one, ranges, and the name under which a caller is
// accounted.
import { describe, expect, it } from "vitest"
import { clientAddress, isInstanceAddress, principalOf } from "../../../kernel/http/addresses.ts"
import { inRange, isRange, parseAddress } from "../../../kernel/config/addressRange.ts"

describe("parseAddress", () => {
  it("parses IPv4 and IPv6, and IPv4-mapped IPv6 as IPv4", () => {
    expect(parseAddress("127.0.0.1")).toEqual([127, 0, 0, 1])
    for (const text of ["::ffff:127.0.0.1", "::FFFF:7f00:1", "[::ffff:127.0.0.1]", "0:0:0:0:0:ffff:7f00:0001"])
      expect([text, parseAddress(text)]).toEqual([text, [127, 0, 0, 1]])
    expect(parseAddress("::1")).toEqual([...Array.from({ length: 15 }, () => 0), 1])
    expect(parseAddress("2001:db8::1%eth0")).toHaveLength(16)
  })

  it("refuses every other text", () => {
    for (const text of [
      "",
      "localhost",
      "127.1",
      "127.0.0.1.1",
      "256.0.0.1",
      "0127.0.0.1",
      "0x7f000001",
      "2130706433",
      "1:2:3:4:5:6:7",
      "1:2:3:4:5:6:7:8:9",
      "::1::2",
      "1:::2",
      "12345::",
      "::1.2.3",
      "127.0.0.1:80",
      "g::"
    ]) {
      expect([text, parseAddress(text)]).toEqual([text, undefined])
    }
  })
})

describe("inRange", () => {
  it("compares by prefix, within one family", () => {
    expect(inRange("10.1.2.3", "10.0.0.0/8")).toBe(true)
    expect(inRange("11.1.2.3", "10.0.0.0/8")).toBe(false)
    expect([inRange("192.168.1.127", "192.168.1.0/25"), inRange("192.168.1.128", "192.168.1.0/25")]).toEqual([
      true,
      false
    ])
    expect(inRange("10.0.0.1", "10.0.0.1")).toBe(true)
    expect(inRange("::ffff:10.0.0.1", "10.0.0.0/8")).toBe(true)
    expect(inRange("2001:db8:1::5", "2001:db8::/32")).toBe(true)
    expect(inRange("1.2.3.4", "0.0.0.0/0")).toBe(true)
    expect(inRange("1.2.3.4", "::/0")).toBe(false)
  })

  it("an invalid range contains no address", () => {
    for (const range of [
      ...["", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/x", "ten/8", "10.0.0.0/", "10.0.0.0/ ", "10.0.0.0/0x8"],
      ...["10.0.0.0/8.0", "10.0.0.0/1e1", "10.0.0.0/08", "10.0.0.0/8/8", "/0"]
    ])
      expect([range, inRange("10.0.0.1", range), isRange(range)]).toEqual([range, false, false])
    expect(inRange("unknown", "0.0.0.0/0")).toBe(false)
  })
})

describe("principalOf", () => {
  it("a principal is the IPv4 address or the IPv6 /64 [S245]", () => {
    expect(principalOf("10.0.0.1")).toBe("ip:10.0.0.1")
    expect(principalOf("::ffff:10.0.0.1")).toBe("ip:10.0.0.1")
    expect(principalOf("2001:db8:0:7::1")).toBe("ip:2001:db8:0:7::/64")
    expect(principalOf("2001:db8:0:7:ffff:ffff:ffff:ffff")).toBe(principalOf("2001:db8:0:7::1"))
    expect(principalOf("none")).toBe("ip:unknown")
  })
})

describe("isInstanceAddress", () => {
  it("recognizes cloud metadata addresses in every notation", () => {
    for (const address of [
      "169.254.169.254",
      "169.254.170.2",
      "[::ffff:169.254.169.254]",
      "::ffff:a9fe:a9fe",
      "64:ff9b::a9fe:a9fe",
      "64:ff9b:1::a9fe:a9fe",
      "64:ff9b:1:a9fe:a9:fe00::",
      "64:ff9b:1:ffff::8.8.8.8",
      "::ffff:0:a9fe:a9fe",
      "2002:a9fe:a9fe::1",
      "::a9fe:a9fe",
      "fe80::1%eth0",
      "fd00:ec2::254",
      "fd20:ce::254",
      "100.100.100.200",
      "168.63.129.16",
      "192.0.0.192"
    ])
      expect([address, isInstanceAddress(address)]).toEqual([address, true])
  })

  it("reports other addresses as no metadata address", () => {
    for (const address of [
      "127.0.0.1",
      "::1",
      "10.0.0.1",
      "fd00::1",
      "169.253.0.1",
      "168.63.129.17",
      "2606:4700::1111",
      "a"
    ])
      expect([address, isInstanceAddress(address)]).toEqual([address, false])
  })
})

describe("clientAddress", () => {
  it("takes the nearest hop that no trusted proxy has", () => {
    const isTrusted = (address: string) => address.startsWith("10.")
    for (const [forwardedFor, address] of [
      ["", "10.0.0.1"],
      [",", "10.0.0.1"],
      ["8.8.8.8", "8.8.8.8"],
      ["9.9.9.9, 8.8.8.8 ,,10.0.0.2,", "8.8.8.8"],
      ["10.0.0.3,10.0.0.2", "10.0.0.3"],
      ["8.8.8.8, unknown, 10.0.0.2", "10.0.0.2"]
    ])
      expect([forwardedFor, clientAddress("10.0.0.1", forwardedFor!, isTrusted)]).toEqual([forwardedFor, address])
    expect(clientAddress("8.8.4.4", "8.8.8.8", isTrusted)).toBe("8.8.4.4")
  })
})
