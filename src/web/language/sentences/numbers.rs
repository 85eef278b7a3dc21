//! The sentences of problems with numbers: those that a document has already, how documents are
//! numbered, who gives the numbers, and what a retry may solve.

/// Gives the sentences before and these to a macro.
macro_rules! with_numbers {
    ($then:ident; $($before:tt)*) => { $then! {
    $($before)*
    // Numbers that it already has.
    DocumentAlreadyNumbered
        "เอกสารนี้มีเลขที่แล้ว กรุณาตรวจสอบเอกสาร"
        "该单据已有编号，请核对单据" "此單據已有編號，請核對單據"
        "The document has a number already. Please check the document.",
    DocumentArchived
        "เอกสารนี้มีเลขที่แล้ว และข้อมูลถูกย้ายไปคลังเก็บ กรุณาติดต่อผู้ดูแลระบบ"
        "该单据已有编号，记录已归档，请联系管理员" "此單據已有編號，紀錄已封存，請聯絡管理員"
        "The document has a number, which is archived. Please contact the administrator.",
    NumberVoided
        "เลขที่เอกสารนี้ถูกยกเลิกแล้ว กรุณาใช้เลขที่ใหม่"
        "该编号已作废，请使用新的编号" "此編號已作廢，請使用新的編號"
        "This number is void. Please use the one that replaces it.",
    NumberTaken
        "เลขที่เอกสารนี้ออกไปแล้ว กรุณาตรวจสอบเลขที่"
        "该编号已发出，请核对编号" "此編號已發出，請核對編號"
        "This number was issued already. Please check the number.",
    NumberCollided
        "เลขที่นี้เป็นของเอกสารอื่น กรุณาติดต่อผู้ดูแลระบบ"
        "该编号属于另一份单据，请联系系统管理员" "此編號屬於另一份單據，請聯絡系統管理員"
        "Another document has this number. Please contact the administrator.",
    NotVoided
        "เลขที่เดิมยังไม่ถูกยกเลิก กรุณายกเลิกก่อนออกเลขที่แทน"
        "原编号尚未作废，请先作废再取替代编号" "原編號尚未作廢，請先作廢再取替代編號"
        "The old number is not void yet. Please have it voided first.",
    AlreadyReplaced
        "เลขที่เดิมมีเลขที่แทนแล้ว กรุณาติดต่อผู้ดูแลระบบ"
        "原编号已有替代编号，请联系系统管理员" "原編號已有替代編號，請聯絡系統管理員"
        "The old number has been replaced already. Please contact the administrator.",
    NumberArchived
        "เลขที่เอกสารนี้อยู่ในคลังเก็บแล้ว จึงแก้ไขไม่ได้ กรุณาติดต่อผู้ดูแลระบบ"
        "该编号已归档，不能再更改，请联系系统管理员" "此編號已封存，不能再變更，請聯絡系統管理員"
        "This number is archived and cannot be changed. Please contact the administrator.",
    DocumentReserved "มีเลขที่จองไว้สำหรับเอกสารนี้แล้ว กรุณายืนยันหรือยกเลิกการจองก่อน"
        "该单据已预留编号，请先确认或取消预留" "此單據已預留編號，請先確認或取消預留"
        "A number is reserved for this document. Please confirm or cancel that first.",
    NumberReserved "เลขที่นี้ยังเป็นเพียงการจอง กรุณายืนยันหรือยกเลิกการจองก่อน"
        "该编号尚处于预留状态，请先确认或取消预留" "此編號尚處於預留狀態，請先確認或取消預留"
        "This number is only reserved. Please confirm or cancel the reservation first.",
    ReservationNotFound "ไม่พบการจองเลขที่นี้" "未找到该编号预留" "找不到此編號預留"
        "There is no such reservation.",
    ReservationConfirmed "การจองเลขที่นี้ได้รับการยืนยันแล้ว จึงยกเลิกไม่ได้" "该预留已确认，不能取消"
        "此預留已確認，不能取消" "The reservation is confirmed already and cannot be cancelled.",
    IsABlock "การจองนี้เป็นชุดเลขที่ กรุณาส่งคืนพร้อมเลขที่ที่ใช้แล้ว"
        "该预留是一段编号，请归还并注明已使用的编号" "此預留是一段編號，請歸還並註明已使用的編號"
        "The reservation is a block. Please hand it back with the numbers that were used.",
    ReservationHandedBack "ชุดเลขที่นี้ส่งคืนแล้ว กรุณาตรวจสอบเลขที่" "该段编号已归还，请核对编号"
        "此段編號已歸還，請核對編號" "The block was handed back already. Please check its numbers.",
    OtherDocument "เลขที่นี้เป็นของเอกสารอื่น" "该编号属于另一份单据" "此編號屬於另一份單據"
        "This number is another document's.",
    ReservationExpired "การจองเลขที่นี้หมดอายุแล้ว กรุณาจองใหม่" "该预留已过期，请重新预留" "此預留已過期，請重新預留"
        "The reservation has expired. Please reserve a number again.",
    ReservationCancelled "การจองเลขที่นี้ถูกยกเลิกแล้ว กรุณาจองใหม่" "该预留已取消，请重新预留" "此預留已取消，請重新預留"
        "The reservation was cancelled. Please reserve a number again.",
    ReservationLost "การจองเลขที่นี้สูญหายไปกับการกู้คืนระบบ กรุณาจองใหม่" "该预留已因系统恢复而失效，请重新预留"
        "此預留已因系統還原而失效，請重新預留"
        "The reservation was lost when the system was restored. Please reserve a number again.",
    RevisionsExhausted
        "เอกสารนี้มีการแก้ไขครบจำนวนแล้ว กรุณาติดต่อผู้ดูแลระบบ"
        "该单据的修订次数已达上限，请联系系统管理员"
        "此單據的修訂次數已達上限，請聯絡系統管理員"
        "The document has as many revisions as it may have. Please contact the administrator.",
    CounterBelowStart
        "เลขที่เอกสารของชุดนี้ยังไม่ถึงเลขเริ่มต้นที่ตั้งไว้ กรุณาติดต่อผู้ดูแลระบบ"
        "该系列的计数尚未达到设定的起始编号，请联系系统管理员"
        "此系列的計數尚未達到設定的起始編號，請聯絡系統管理員"
        "This series has not reached its first document number. Please contact the administrator.",
    SequenceExhausted
        "เลขที่เอกสารของชุดนี้เหลือไม่พอ กรุณาติดต่อผู้ดูแลระบบ"
        "该系列的单据编号已不够用，请联系系统管理员" "此系列的單據編號已不敷使用，請聯絡系統管理員"
        "This series has too few document numbers left. Please contact the administrator.",

    // How documents are numbered.
    SeriesAmbiguous
        "มีการตั้งค่าเลขที่มากกว่าหนึ่งชุดสำหรับเอกสารนี้ กรุณาติดต่อผู้ดูแลระบบ"
        "有多个编号设置适用于该单据，请联系系统管理员" "有多個編號設定適用於此單據，請聯絡系統管理員"
        "Two numberings serve this document. Please contact the administrator.",
    TemplateAmbiguous
        "การตั้งค่านี้อาจทำให้เลขที่เอกสารซ้ำกัน กรุณาติดต่อผู้ดูแลระบบ"
        "该编号设置可能产生重复的编号，请联系系统管理员" "此編號設定可能產生重複的編號，請聯絡系統管理員"
        "Two documents could get one number. Please contact the administrator.",
    SeriesInUse
        "เลขที่ชุดนี้ถูกใช้แล้ว จึงเปลี่ยนเช่นนี้ไม่ได้"
        "该系列已签发编号，不能如此更改" "此系列已核發編號，不能如此變更"
        "This series has issued numbers and cannot be changed like this.",
    CodeTaken
        "รหัสของชุดเลขที่นี้ถูกใช้แล้ว กรุณาใช้รหัสอื่น"
        "该系列代码已被使用，请换一个代码" "此系列代碼已被使用，請換一個代碼"
        "Another series has this code. Please choose another one.",

    // Systems that give numbers.
    ExternalRefused
        "ระบบที่ออกเลขที่เอกสารนี้ปฏิเสธคำขอ กรุณาติดต่อผู้ดูแลระบบ"
        "提供该编号的外部系统拒绝了请求，请联系系统管理员"
        "提供此編號的外部系統拒絕了請求，請聯絡系統管理員"
        "The system that gives these numbers refuses. Please contact the administrator.",
    ExternalInvalid
        "ระบบที่ออกเลขที่เอกสารนี้ให้เลขที่ที่ใช้ไม่ได้ กรุณาติดต่อผู้ดูแลระบบ"
        "提供该编号的外部系统未给出可用的编号，请联系系统管理员"
        "提供此編號的外部系統未給出可用的編號，請聯絡系統管理員"
        "The system that gives these numbers gave none of use. Please contact the administrator.",
    ExternalNumberTaken
        "ระบบที่ออกเลขที่เอกสารนี้ให้เลขที่ซ้ำ กรุณาติดต่อผู้ดูแลระบบ"
        "提供该编号的外部系统给出了重复的编号，请联系系统管理员"
        "提供此編號的外部系統給出了重複的編號，請聯絡系統管理員"
        "The system that gives these numbers gave one twice. Please contact the administrator.",

    // Exchange serials.
    InterfaceSerialRepeated
        "ระบบได้รับรายการนี้แล้ว ไม่ต้องส่งซ้ำ"
        "该请求已收到，请勿重复提交" "已收到此請求，請勿重複提交"
        "This request has been received already. Do not send it again.",
    AlreadyProcessed
        "รายการนี้ดำเนินการเสร็จแล้ว"
        "该交易已处理成功" "此交易已處理成功"
        "This transaction has been processed already.",
    StateUnknown
        "รายการนี้กำลังดำเนินการหรือยังไม่ทราบผล กรุณาตรวจสอบสถานะ"
        "该交易正在处理中或结果未知，请核实交易状态" "此交易正在處理中或結果未知，請核實交易狀態"
        "This transaction is in progress, or its result is not known. Please check its state.",
    AttemptNotCurrent
        "สถานะของรายการนี้เปลี่ยนไปแล้ว กรุณาติดต่อผู้ดูแลระบบ"
        "该交易的状态已变更，请联系系统管理员" "此交易的狀態已變更，請聯絡系統管理員"
        "The state of this transaction has changed. Please contact the administrator.",
    StepNotFound
        "ไม่พบรายการนี้"
        "未找到该交易" "找不到此交易"
        "There is no such transaction.",

    // Problems that a retry may solve.
    LockTimeout
        "ระบบกำลังยุ่ง กรุณาลองใหม่ภายหลัง"
        "系统繁忙，请稍后重试" "系統忙碌中，請稍後再試"
        "The system is busy. Please try again later.",
    DatabaseConnection
        "ระบบกำลังยุ่ง กรุณาลองใหม่ภายหลัง ขณะนี้เข้าถึงทะเบียนเลขที่ไม่ได้"
        "系统繁忙，请稍后重试：暂时无法访问编号记录" "系統忙碌中，請稍後再試：暫時無法存取編號紀錄"
        "The system is busy. Please try again later. Its records cannot be reached now.",
    CeilingReached
        "ระบบกำลังยุ่ง กรุณาลองใหม่ภายหลัง กำลังเตรียมเลขที่ชุดต่อไป"
        "系统繁忙，请稍后重试：正在准备后续编号" "系統忙碌中，請稍後再試：正在準備後續編號"
        "The system is busy. Please try again later. Further numbers are being made ready.",
    OutboxFull
        "ระบบกำลังยุ่ง กรุณาลองใหม่ภายหลัง กำลังบันทึกเลขที่ที่ออกไปแล้ว"
        "系统繁忙，请稍后重试：正在记录已发出的编号" "系統忙碌中，請稍後再試：正在記錄已發出的編號"
        "The system is busy. Please try again later. Numbers that are out are being recorded.",
    QueueFull
        "ระบบกำลังยุ่ง กรุณาลองใหม่ภายหลัง มีคำขอรออยู่มากเกินไป"
        "系统繁忙，请稍后重试：等待的请求过多" "系統忙碌中，請稍後再試：等待的請求過多"
        "The system is busy. Please try again later. Too many requests wait.",
    ChecksFull
        "ระบบกำลังยุ่ง กรุณาลองใหม่ภายหลัง มีการค้นหาหรือตรวจสอบมากเกินไป"
        "系统繁忙，请稍后重试：查询或检查过多" "系統忙碌中，請稍後再試：查詢或檢查過多"
        "The system is busy. Please try again later. Too much is being looked up or checked.",
    SeriesChanged
        "ระบบกำลังยุ่ง กรุณาลองใหม่ภายหลัง การตั้งค่าเลขที่เพิ่งถูกเปลี่ยน"
        "系统繁忙，请稍后重试：编号设置刚刚更改" "系統忙碌中，請稍後再試：編號設定剛剛變更"
        "The system is busy. Please try again later. The numbering has just been changed.",
    RedisUnavailable
        "ระบบกำลังยุ่ง กรุณาลองใหม่ภายหลัง ขณะนี้ยังออกเลขที่ไม่ได้"
        "系统繁忙，请稍后重试：暂时无法发放编号" "系統忙碌中，請稍後再試：暫時無法發放編號"
        "The system is busy. Please try again later. It cannot give out numbers now.",
    PartitionHeld
        "ระบบกำลังยุ่ง กรุณาลองใหม่ภายหลัง การออกเลขที่หยุดรอผู้ดูแลระบบ"
        "系统繁忙，请稍后重试：编号发放已暂停，等待管理员处理"
        "系統忙碌中，請稍後再試：編號發放已暫停，等待管理員處理"
        "The system is busy. Please try again later. Numbering waits for the administrator.",
    ClockBehind
        "ระบบกำลังยุ่ง กรุณาลองใหม่ภายหลัง นาฬิกาของระบบไม่ตรง"
        "系统繁忙，请稍后重试：系统时钟不准" "系統忙碌中，請稍後再試：系統時鐘不準"
        "The system is busy. Please try again later. Its clock is not right.",
    NumberNotJournaled
        "ระบบกำลังยุ่ง กรุณาลองใหม่ภายหลัง เลขที่ของเอกสารนี้ยังไม่ได้บันทึก"
        "系统繁忙，请稍后重试：该单据的编号尚未记录" "系統忙碌中，請稍後再試：此單據的編號尚未記錄"
        "The system is busy. Please try again later. This number is not recorded yet.",
    NodeNumbersHeld
        "ระบบกำลังยุ่ง กรุณาลองใหม่ภายหลัง มีส่วนของระบบทำงานพร้อมกันมากเกินไป"
        "系统繁忙，请稍后重试：同时运行的实例过多" "系統忙碌中，請稍後再試：同時執行的實例過多"
        "The system is busy. Please try again later. Too many parts of it run at once.",
    OlderProcess "ระบบกำลังยุ่ง กรุณาลองใหม่ภายหลัง ระบบกำลังอัปเดต จึงยังจองเลขที่ไม่ได้"
        "系统繁忙，请稍后重试：系统正在升级，暂不能预留编号" "系統忙碌中，請稍後再試：系統正在升級，暫不能預留編號"
        "The system is busy. Please try again later. It is being updated and reserves no numbers.",
    SeriesUnread "ระบบกำลังยุ่ง กรุณาลองใหม่ภายหลัง ขณะนี้ยังจองเลขที่ไม่ได้"
        "系统繁忙，请稍后重试：暂时无法预留编号" "系統忙碌中，請稍後再試：暫時無法預留編號"
        "The system is busy. Please try again later. It cannot reserve numbers now.",
    ReservationsFull "ระบบกำลังยุ่ง กรุณาลองใหม่ภายหลัง มีเลขที่ที่จองไว้มากเกินไป"
        "系统繁忙，请稍后重试：预留的编号过多" "系統忙碌中，請稍後再試：預留的編號過多"
        "The system is busy. Please try again later. Too many numbers are reserved.",
    NotReady
        "ระบบกำลังยุ่ง กรุณาลองใหม่ภายหลัง ระบบยังไม่พร้อม"
        "系统繁忙，请稍后重试：系统尚未就绪" "系統忙碌中，請稍後再試：系統尚未就緒"
        "The system is busy. Please try again later. It is not ready yet.",
    ExternalUnavailable
        "ระบบกำลังยุ่ง กรุณาลองใหม่ภายหลัง ระบบที่ออกเลขที่นี้ไม่ตอบ"
        "系统繁忙，请稍后重试：提供该编号的外部系统没有响应"
        "系統忙碌中，請稍後再試：提供此編號的外部系統沒有回應"
        "The system is busy. Please try again later. Who gives these numbers does not answer.",
    Stopping
        "ระบบกำลังยุ่ง กรุณาลองใหม่ภายหลัง ส่วนนี้ของระบบกำลังหยุดทำงาน"
        "系统繁忙，请稍后重试：该部分系统正在停止" "系統忙碌中，請稍後再試：此部分系統正在停止"
        "The system is busy. Please try again later. This part of it is stopping.",
    Internal
        "เกิดข้อผิดพลาดในระบบ กรุณาติดต่อผู้ดูแลระบบ"
        "系统发生错误，请联系系统管理员" "系統發生錯誤，請聯絡系統管理員"
        "A system error occurred. Please contact the administrator.",
    } };
}
pub(super) use with_numbers;
