"""The PN532's commands by their codes (NXP UM0701-02, 7.1)."""

COMMANDS = {
    0x00: "Diagnose", 0x02: "GetFirmwareVersion", 0x04: "GetGeneralStatus", 0x06: "ReadRegister",
    0x08: "WriteRegister", 0x0C: "ReadGPIO", 0x0E: "WriteGPIO", 0x10: "SetSerialBaudRate", 0x12: "SetParameters",
    0x14: "SAMConfiguration", 0x16: "PowerDown", 0x32: "RFConfiguration", 0x40: "InDataExchange",
    0x42: "InCommunicateThru", 0x44: "InDeselect", 0x46: "InJumpForPSL", 0x4A: "InListPassiveTarget",
    0x4E: "InPSL", 0x50: "InATR", 0x52: "InRelease", 0x54: "InSelect", 0x56: "InJumpForDEP", 0x60: "InAutoPoll",
}  # fmt: skip
